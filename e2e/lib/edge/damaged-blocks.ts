import { randomBytes } from 'node:crypto'
import { closeSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import type { ControlledEdge } from './controlled-edge.ts'
import { storeOf } from './held-versions.ts'

const blockSize = 4096

interface DamagedBlock {
  isRepaired: () => boolean
}

/** Damages blocks of an image that lie in an edge's store as they are: the image must not shrink. */
export function damageBlocks(edge: ControlledEdge, image: Buffer, offsets: number[]): DamagedBlock[] {
  const folder = path.join(storeOf(edge), 'extents')
  const files = readdirSync(folder).map((name) => path.join(folder, name))
  const extents = files.map((file) => ({ file, bytes: readFileSync(file) }))
  return offsets.map((offset) => {
    const block = image.subarray(offset, offset + blockSize)
    for (const { file, bytes } of extents) {
      const at = bytes.indexOf(block)
      if (at < 0) continue
      const fd = openSync(file, 'r+')
      writeSync(fd, randomBytes(100), 0, 100, at + 1000)
      closeSync(fd)
      return {
        isRepaired: () =>
          readFileSync(file)
            .subarray(at, at + blockSize)
            .equals(block),
      }
    }
    throw new Error(`no file has the block at ${offset}`)
  })
}
