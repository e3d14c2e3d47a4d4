/** What devices have noticed in one part of the run. */
export interface Account {
  /** Boots of simulated devices that became ready. */
  ready: number
  reads: number
  writes: number
  /** Rounds of virtual machines: a file written, synced, and read again from the edge. */
  rounds: number
  /** The longest read or write of each device, in ms. */
  stalls: Map<string, number>
  /** Whatever was answered other than it should have been. */
  errors: string[]
}

export function newAccount(): Account {
  return { ready: 0, reads: 0, writes: 0, rounds: 0, stalls: new Map(), errors: [] }
}

export function noteStall({ stalls }: Account, device: string, ms: number): void {
  stalls.set(device, Math.max(stalls.get(device) ?? 0, ms))
}

/**
 * The kinds of device, whose stalls are not comparable: those that write retransmit at fixed times, and an emulated
 * machine needs most of the time for itself.
 */
export type DeviceKind = 'reader' | 'writer' | 'machine'

/** MAC addresses of devices that write. */
export const writerMac = (index: number) => `02:bf:00:20:00:${index.toString(16).padStart(2, '0')}`
const writerPrefix = writerMac(0).slice(0, -2)

function kindOf(device: string): DeviceKind {
  if (device.startsWith('machine')) return 'machine'
  return device.startsWith(writerPrefix) ? 'writer' : 'reader'
}

const ofKind = ({ stalls }: Account, kind: DeviceKind) => [...stalls].filter(([device]) => kindOf(device) === kind)

/** The longest stall of any device of this kind; 0 without one. */
export function longestStallMs(account: Account, kind: DeviceKind): number {
  return Math.max(0, ...ofKind(account, kind).map(([, ms]) => ms))
}

/** The stall that half of the devices of this kind stay below. */
export function medianStallMs(account: Account, kind: DeviceKind): number {
  const sorted = ofKind(account, kind)
    .map(([, ms]) => ms)
    .sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

/** How much longer the longest stall of one and the same device was in the second account; 0 where none was longer. */
export function longestIncreaseMs(before: Account, after: Account, kind: DeviceKind): number {
  const more = ofKind(after, kind).flatMap(([device, ms]) => {
    const earlier = before.stalls.get(device)
    return earlier === undefined ? [] : [ms - earlier]
  })
  return Math.max(0, ...more)
}
