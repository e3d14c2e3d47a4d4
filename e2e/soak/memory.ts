import { readFileSync } from 'node:fs'

/** Resident memory in bytes by process, in order of time. */
export type MemorySeries = Map<string, number[]>

export interface MemoryLimits {
  [who: string]: number
}

export interface MemoryUse {
  who: string
  peakBytes: number
  /** The mean of the run's second quarter, after which memory should stop growing, and of its last quarter. */
  earlyBytes: number
  lateBytes: number
  limitBytes: number
}

/** Reads a running process's memory; null once it has ended. */
export function residentBytes(pid: number): number | null {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return kib === undefined ? null : Number(kib) * 1024
  } catch {
    return null
  }
}

export function memoryUse(series: MemorySeries, limits: MemoryLimits): MemoryUse[] {
  return [...series].map(([who, samples]) => ({
    who,
    peakBytes: samples.reduce((peak, bytes) => Math.max(peak, bytes), 0),
    earlyBytes: mean(quarter(samples, 1)),
    lateBytes: mean(quarter(samples, 3)),
    limitBytes: limits[who] ?? 0,
  }))
}

/** Returns a sentence for each process beyond its limit. */
export function beyondLimits(uses: MemoryUse[]): string[] {
  return uses
    .filter(({ peakBytes, limitBytes }) => peakBytes > limitBytes)
    .map(
      ({ who, peakBytes, limitBytes }) => `memory of ${who}: ${mib(peakBytes)} MiB, more than ${mib(limitBytes)} MiB`,
    )
}

export const mib = (bytes: number) => (bytes / 1024 / 1024).toFixed(0)

function quarter(samples: number[], index: number): number[] {
  const at = (part: number) => Math.floor((samples.length * part) / 4)
  return samples.slice(at(index), at(index + 1))
}

function mean(values: number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}
