import { createHash } from 'node:crypto'
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import path from 'node:path'
import { must } from '../lib/run.mjs'

const debianBootPrograms = '/usr/lib/ipxe'
const bootProgramNames = ['undionly.kpxe', 'snponly.efi', 'ipxe.efi']

/** Not `versions`, which a store of versions has itself. */
const stockName = 'plain'

/**
 * Puts the files of a vDisk version into an edge's store, in a folder that is named by what is in them, and removes
 * those that were there before. The disk is linked where that is possible, not copied.
 * @param {string} store
 * @param {{ disk: string, kernel?: string, initrd?: string }} files without a kernel iPXE boots the disk itself
 * @returns paths below the store
 */
export async function stockStore(store, { disk, kernel, initrd }) {
  const { size, mtimeMs, ino } = statSync(disk)
  const hash = createHash('sha256').update(`${disk} ${size} ${mtimeMs} ${ino}`)
  for (const file of [kernel, initrd]) hash.update(file ? readFileSync(file) : 'none')
  const folder = hash.digest('hex').slice(0, 16)
  removeFormerStock(store)
  const stock = path.join(store, stockName)
  const target = path.join(stock, folder)
  if (!existsSync(target)) {
    const partial = `${target}.part`
    rmSync(partial, { recursive: true, force: true })
    mkdirSync(partial, { recursive: true })
    if (kernel) copyFileSync(kernel, path.join(partial, 'kernel'))
    if (initrd) copyFileSync(initrd, path.join(partial, 'initrd'))
    await linkOrCopy(disk, path.join(partial, 'disk.raw'))
    renameSync(partial, target)
  }
  for (const other of readdirSync(stock)) if (other !== folder) rmSync(path.join(stock, other), { recursive: true })
  const inStore = (name) => `${stockName}/${folder}/${name}`
  return {
    sizeBytes: size,
    diskPath: inStore('disk.raw'),
    kernelPath: kernel ? inStore('kernel') : null,
    initrdPath: initrd ? inStore('initrd') : null,
  }
}

/** Earlier releases put it into `versions`, before there was a store there. */
function removeFormerStock(store) {
  if (!existsSync(path.join(store, 'bootfarm-store')))
    rmSync(path.join(store, 'versions'), { recursive: true, force: true })
}

async function linkOrCopy(from, to) {
  try {
    linkSync(from, to)
  } catch (error) {
    // Another file system, or one without links.
    if (!['EXDEV', 'EPERM', 'EOPNOTSUPP'].includes(error.code)) throw error
    await must(`Copying ${from}`, 'cp', ['--reflink=auto', '--sparse=always', from, to])
  }
}

/** Puts the system's iPXE programs into a separate folder, since an edge publishes the whole folder. */
export function stockBootPrograms(directory) {
  mkdirSync(directory, { recursive: true })
  for (const name of bootProgramNames) copyFileSync(path.join(debianBootPrograms, name), path.join(directory, name))
  return directory
}
