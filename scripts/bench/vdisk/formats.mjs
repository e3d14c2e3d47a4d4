import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import path from 'node:path'
import { edgeProgram } from '../../lib/paths.mjs'
import { dropPageCache, timed } from './imports.mjs'
import { lastJson, runToEnd } from './run.mjs'

const imageMib = 1024
const pieceSize = 1 << 20

/** Names of formats, and how qemu-img writes them. */
const sources = {
  raw: null,
  'VHD, dynamic': ['-O', 'vpc', '-o', 'force_size=on'],
  'VHDX, dynamic': ['-O', 'vhdx'],
  qcow2: ['-O', 'qcow2'],
  'qcow2, deflate': ['-c', '-O', 'qcow2'],
  'qcow2, zstd': ['-c', '-O', 'qcow2', '-o', 'compression_type=zstd'],
  'VMDK, sparse': ['-O', 'vmdk'],
  'VMDK, stream-optimized': ['-O', 'vmdk', '-o', 'subformat=streamOptimized'],
}
const targets = ['raw', 'qcow2', 'vhdx']

/** Imports the same disk from each format, and exports it to each, in turns, each with a cold page cache. */
export async function measureFormats(directory, rounds) {
  const raw = path.join(directory, 'image.raw')
  makeImage(raw)
  const images = {}
  for (const [name, options] of Object.entries(sources)) {
    images[name] = options ? path.join(directory, name.replaceAll(/\W/g, '')) : raw
    if (options) await runToEnd('qemu-img', ['convert', '-f', 'raw', ...options, raw, images[name]])
  }
  const imports = Object.fromEntries(Object.keys(sources).map((name) => [name, []]))
  const exports = Object.fromEntries(targets.map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    const names = Object.keys(sources)
    for (const name of round % 2 === 0 ? names : names.toReversed())
      imports[name].push(await measureImport(images[name], { directory, exports: name === 'raw' ? exports : null }))
  }
  const fileMib = Object.fromEntries(
    Object.entries(images).map(([name, file]) => [name, (statSync(file).blocks * 512) / 1_048_576]),
  )
  return { imageMib, imports, exports, fileMib }
}

async function measureImport(image, { directory, exports }) {
  const store = path.join(directory, 'store')
  await runToEnd(edgeProgram, ['vdisk', 'init', '--store', store])
  dropPageCache()
  let version
  const args = ['vdisk', 'import', image, '--store', store, '--name', 'bench', '--no-boot-files', '--json']
  const seconds = await timed(async () => {
    version = lastJson(await runToEnd(edgeProgram, args)).version
  })
  for (const format of exports ? targets : []) {
    const file = path.join(directory, `exported.${format}`)
    dropPageCache()
    const of = ['--store', store, '--version', version, '--format', format]
    exports[format].push(await timed(() => runToEnd(edgeProgram, ['vdisk', 'export', file, ...of])))
    rmSync(file)
  }
  rmSync(store, { recursive: true })
  return seconds
}

/** One MiB in eight is zeros; the others shrink to about a half, as the files of a system do. */
function makeImage(image) {
  const file = openSync(image, 'w')
  const piece = Buffer.alloc(pieceSize)
  for (let index = 0; index < imageMib; index++) {
    if (index % 8 === 7) continue
    for (let at = 0; at < pieceSize; at += 8192) {
      randomFillSync(piece, at, 4096)
      piece.fill(`text of block ${index * 128 + at / 8192}, which can be compressed; `, at + 4096, at + 8192)
    }
    writeSync(file, piece, 0, pieceSize, index * pieceSize)
  }
  closeSync(file)
}
