import { renameSync, writeFileSync } from 'node:fs'

const readSize = 64 << 10

/** Writes the trace of a device that reads its whole disk, a read each `stepMs`; another device may read the file. */
export function writeWholeTrace(file: string, diskSize: number, stepMs = 0): void {
  const reads = Array.from({ length: Math.ceil(diskSize / readSize) }, (_, index) => {
    const at = index * readSize
    return `${index * stepMs},${at},${Math.min(readSize, diskSize - at)}\n`
  })
  writeFileSync(`${file}.new`, `time_ms,offset,length\n${reads.join('')}`)
  renameSync(`${file}.new`, file)
}
