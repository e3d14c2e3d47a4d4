import { readFileSync } from 'node:fs'

/** New slabs of an edge's allocator, at 64 KiB for each size: no growth that goes on. */
export const slabsKib = 512

/**
 * What a process may write without asking the system for more, in KiB: its tables before and after their first use, and
 * what its allocators hold. Resident memory grows with the first use of each slot, and so with the speed of a flood;
 * this grows only when a program takes memory that it did not reserve at its start.
 */
export function reservedKib(pid: number): number {
  const kib = /^VmData:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  if (kib === undefined) throw new Error(`process ${pid} has no VmData in /proc`)
  return Number(kib)
}
