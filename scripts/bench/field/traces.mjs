import { readFileSync } from 'node:fs'

const header = 'time_ms,offset,length'
const blockSize = 4096

/**
 * Returns the reads of a recorded boot (CSV with the header `time_ms,offset,length`).
 * @param {string} file
 * @returns {{ offset: number, length: number }[]}
 */
export function readsOf(file) {
  const [, ...lines] = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map((line) => {
    const [, offset, length] = line.split(',').map(Number)
    return { offset, length }
  })
}

export const bytesOf = (reads) => reads.reduce((sum, { length }) => sum + length, 0)

/**
 * Returns reads of so many bytes at least: those of a boot, and then the same at other places of the disk.
 * @param {{ offset: number, length: number }[]} reads
 * @param {{ bytes: number, diskSize: number }} wanted
 */
export function lengthened(reads, { bytes, diskSize }) {
  const copies = Math.ceil(bytes / bytesOf(reads))
  // Copies share the disk, and no block of one is likely to be one of another.
  const shift = Math.floor(diskSize / copies / blockSize) * blockSize
  const found = []
  let sum = 0
  for (let copy = 0; copy < copies; copy++) {
    for (const { offset, length } of reads) {
      if (sum >= bytes) return found
      found.push({ offset: (offset + copy * shift) % (diskSize - length), length })
      sum += length
    }
  }
  return found
}

/**
 * Returns reads of one size, each at another place.
 * @param {{ size: number, count: number, diskSize: number }} wanted
 */
export function even({ size, count, diskSize }) {
  const stride = Math.floor(diskSize / count / blockSize) * blockSize
  // A step that shares no factor with the count visits each place once.
  const step = 769
  return Array.from({ length: count }, (_, index) => ({ offset: ((index * step) % count) * stride, length: size }))
}

/** Without think times. */
export const csvOf = (reads) =>
  `${[header, ...reads.map(({ offset, length }) => `0,${offset},${length}`)].join('\n')}\n`
