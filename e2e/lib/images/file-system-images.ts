import { execFileSync } from 'node:child_process'
import {
  closeSync,
  ftruncateSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { type Files, writeTree } from './image-files.ts'

/** A file system with these files, made by its own tools without a driver in the kernel. */
export interface FileSystemImage {
  directory: string
  name: string
  files: Files
  options?: readonly string[]
  sizeMib?: number
}

/** The smallest XFS that mkfs.xfs makes has 300 MiB; the file is sparse. */
export function makeXfs({ directory, name, files, options = [], sizeMib = 320 }: FileSystemImage): string {
  const tree = inTree(directory, name, files)
  const image = sparseFile(directory, name, sizeMib)
  const prototype = path.join(directory, `${name}.prototype`)
  writeFileSync(prototype, ['/dev/null', '0 0', 'd--755 0 0', ...prototypeLines(tree), '$', ''].join('\n'))
  quietly('/usr/sbin/mkfs.xfs', ['-q', ...options, '-p', prototype, image])
  rmSync(tree, { recursive: true })
  rmSync(prototype)
  return image
}

/** Without compression, which this tool has only in later versions than Debian's. */
export function makeBtrfs({ directory, name, files, options = [], sizeMib = 128 }: FileSystemImage): string {
  const tree = inTree(directory, name, files)
  const image = sparseFile(directory, name, sizeMib)
  quietly('/usr/sbin/mkfs.btrfs', ['-q', ...options, '--rootdir', tree, image])
  rmSync(tree, { recursive: true })
  return image
}

export function makeSquashfs({ directory, name, files, options = [] }: FileSystemImage): string {
  const tree = inTree(directory, name, files)
  const image = path.join(directory, `${name}.raw`)
  rmSync(image, { force: true })
  quietly('/usr/bin/mksquashfs', [tree, image, '-quiet', '-no-progress', '-all-root', ...options])
  rmSync(tree, { recursive: true })
  return image
}

export function sparseFile(directory: string, name: string, sizeMib: number): string {
  const image = path.join(directory, `${name}.raw`)
  rmSync(image, { force: true })
  const fd = openSync(image, 'w')
  ftruncateSync(fd, sizeMib << 20)
  closeSync(fd)
  return image
}

function inTree(directory: string, name: string, files: Files): string {
  const tree = path.join(directory, `${name}.tree`)
  writeTree(tree, files)
  return tree
}

/** The prototype of mkfs.xfs(8): a line a file, and `$` at the end of a directory. */
function prototypeLines(tree: string): string[] {
  return readdirSync(tree).flatMap((name) => {
    const file = path.join(tree, name)
    const status = lstatSync(file)
    if (status.isSymbolicLink()) return [`${name} l--777 0 0 ${readlinkSync(file)}`]
    if (status.isDirectory()) return [`${name} d--755 0 0`, ...prototypeLines(file), '$']
    return [`${name} ---644 0 0 ${file}`]
  })
}

function quietly(program: string, args: string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
