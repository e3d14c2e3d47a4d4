import { readFileSync } from 'node:fs'

/** New slabs of an edge's allocator, at 64 KiB for each size: no growth that goes on. */
export const slabsKib = 512

/** The stack of a thread of the standard library's pool. Requests of the uplink start one when all others are busy. */
const poolStackKib = 16 << 10

/**
 * What a process may write without asking the system for more, in KiB: its tables before and after their first use, and
 * what its allocators hold. Resident memory grows with the first use of each slot, and so with the speed of a flood;
 * this grows only when a program takes memory that it did not reserve at its start. Stacks of pool threads are left
 * out.
 */
export function reservedKib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const numberOf = (name: string) => {
    const found = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]
    if (found === undefined) throw new Error(`process ${pid} has no ${name} in /proc`)
    return Number(found)
  }
  return numberOf('VmData') - numberOf('Threads') * poolStackKib
}
