import { execFileSync } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readdirSync, readSync, writeFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import { x86Kernel } from '../../../e2e/lib/images/loader-files.ts'
import { edgeProgram, inRoot } from '../../lib/paths.mjs'
import { lastJson, runToEnd } from '../vdisk/run.mjs'

/** More than the traces read; reads beyond it are folded back (bootfarm-sim). */
const diskMib = 512
const blockSize = 4096
const partSize = 16 << 20
const kernelSize = 1 << 20
const initramfsSize = 3 << 20
const bootProgramSize = 70_000

/** What devices boot: a recorded boot, and a disk whose units can be packed or not. */
export const versions = ['bios plain', 'uefi plain', 'uefi packed']

/**
 * @typedef {object} StoredVersion
 * @property {string} name
 * @property {string} trace
 * @property {string} image what every byte is compared with
 * @property {string} store
 * @property {string} version
 */

/**
 * Makes both disks, imports them, and packs the one that can be.
 * @param {string} scratch
 * @returns {Promise<{ versions: Map<string, StoredVersion>, bootFiles: string }>}
 */
export async function makeDisks(scratch) {
  const kernel = path.join(scratch, 'kernel')
  const initramfs = path.join(scratch, 'initramfs')
  writeFileSync(kernel, x86Kernel('6.1.0-1-simulated', randomBytes(kernelSize)))
  writeFileSync(initramfs, randomBytes(initramfsSize))
  const bootFiles = path.join(scratch, 'boot-files')
  mkdirSync(bootFiles)
  writeFileSync(path.join(bootFiles, 'undionly.kpxe'), randomBytes(bootProgramSize))
  const found = new Map()
  for (const content of ['plain', 'packed']) {
    const image = path.join(scratch, `${content}.raw`)
    writeDisk(image, content === 'packed')
    const store = path.join(scratch, `store-${content}`)
    await runToEnd(edgeProgram, ['vdisk', 'init', '--store', store])
    const boots = ['--kernel', kernel, '--initrd', initramfs, '--cmdline', 'quiet']
    const options = ['--store', store, '--name', content, '--format', 'raw', ...boots, '--json']
    const { version } = lastJson(await runToEnd(edgeProgram, ['vdisk', 'import', image, ...options]))
    if (content === 'packed') await runToEnd(edgeProgram, ['vdisk', 'compress', '--store', store])
    for (const name of versions.filter((one) => one.endsWith(content))) {
      const trace = inRoot(`e2e/traces/boot-trace-${name.split(' ')[0]}.csv`)
      found.set(name, { name, trace, image, store, version })
    }
  }
  return { versions: found, bootFiles }
}

/** Every block is another one; of a disk that can be packed, half of each is zeros. */
function writeDisk(file, isPackable) {
  const handle = openSync(file, 'w')
  const part = Buffer.alloc(partSize)
  for (let written = 0; written < diskMib << 20; written += part.length) {
    randomFillSync(part)
    if (isPackable) for (let at = 0; at < part.length; at += blockSize) part.fill(0, at + blockSize / 2, at + blockSize)
    writeSync(handle, part)
  }
  closeSync(handle)
}

const randomBytes = (size) => randomFillSync(Buffer.alloc(size))

/** The whole store is in the page cache. */
export function remember(store) {
  const part = Buffer.alloc(partSize)
  for (const file of filesOf(store)) {
    const handle = openSync(file, 'r')
    while (readSync(handle, part) > 0);
    closeSync(handle)
  }
}

/** The page cache keeps nothing of a store: the next boot is cold. */
export function forget(store) {
  for (const file of filesOf(store))
    execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' })
}

function filesOf(store) {
  const entries = readdirSync(store, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name))
}
