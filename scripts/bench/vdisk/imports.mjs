import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import { edgeProgram } from '../../lib/paths.mjs'
import { runToEnd } from './run.mjs'

const imageMib = 4096
const pieceSize = 16 << 20

/**
 * Imports the same image into our store and into qcow2, in turns, each with a cold page cache and until it is durable.
 */
export async function measureImports(directory, rounds) {
  const image = path.join(directory, 'image.raw')
  makeImage(image)
  const store = path.join(directory, 'store')
  const qcow2 = path.join(directory, 'image.qcow2')
  const contenders = [
    {
      by: 'bootfarm',
      async convert() {
        await runToEnd(edgeProgram, ['vdisk', 'init', '--store', store])
        return timed(() =>
          runToEnd(edgeProgram, ['vdisk', 'import', image, '--store', store, '--name', 'bench', '--no-boot-files']),
        )
      },
    },
    {
      by: 'qemu-img',
      convert: () =>
        timed(async () => {
          await runToEnd('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', image, qcow2])
          await runToEnd('sync', [qcow2])
        }),
    },
  ]
  const measured = { bootfarm: [], 'qemu-img': [] }
  for (let round = 0; round < rounds; round++) {
    for (const { by, convert } of round % 2 === 0 ? contenders : contenders.toReversed()) {
      dropPageCache()
      measured[by].push(await convert())
      for (const made of [store, qcow2]) rmSync(made, { recursive: true, force: true })
    }
  }
  return { imageMib, seconds: measured }
}

/** Returns the seconds that it takes. */
export async function timed(work) {
  const begin = performance.now()
  await work()
  return (performance.now() - begin) / 1000
}

/** Every block differs; one part in eight is zeros, as in real images. */
function makeImage(image) {
  const file = openSync(image, 'w')
  const piece = Buffer.alloc(pieceSize)
  for (let at = 0, index = 0; at < imageMib * 1_048_576; at += pieceSize, index++) {
    if (index % 8 === 7) piece.fill(0)
    else randomFillSync(piece)
    writeSync(file, piece, 0, pieceSize, at)
  }
  closeSync(file)
}

/** Drops pages that are on the disk already; the others are written first. */
export function dropPageCache() {
  writeFileSync('/proc/sys/vm/drop_caches', '3')
}
