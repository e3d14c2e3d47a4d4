import type { RouterOutputs } from '../../lib/trpc'
import { packedAt, packedIdLength, packedMacLength, packId, packMac } from './packed-id.ts'

export type Storm = RouterOutputs['storm']['get']
export type StormState = Storm['states'][number]
type BootSummary = RouterOutputs['boot']['list']['items'][number]

/** One device. Ids are packed: thousands of them are never read. Times are those of the API's clock. */
export interface StormCell {
  /** Site and MAC address: by these a boot belongs to a device. */
  key: string
  name: string
  siteName: string
  /** Otherwise a machine that nobody has registered. */
  isRegistered: boolean
  /** Null: no boot in the time. */
  bootId: string | null
  /** Null: there is a boot. */
  deviceId: string | null
  state: StormState
  /** Index into the storm's kinds; -1: not known. */
  kind: number
  startedAtMs: number
  /** From the start to the end of the last known phase. */
  tookMs: number
  /** Start of the phase in progress, since the start of the boot. */
  phaseMs: number
}

export interface StormModel {
  storm: Storm
  cells: StormCell[]
}

export function stormModelOf(storm: Storm): StormModel {
  const { cells, states, since } = storm
  const sinceMs = Date.parse(since)
  const unregistered = new Set(cells.unregistered)
  const siteOf = storm.sites.flatMap((site) => Array.from({ length: site.deviceCount }, () => site))
  return {
    storm,
    cells: cells.names.map((name, index): StormCell => {
      const { id: siteId, name: siteName } = siteOf[index] ?? { id: '', name: '' }
      const started = cells.startedTenths[index] ?? null
      const id = packedAt(cells.ids, index, packedIdLength)
      return {
        key: keyOf(siteId, packedAt(cells.macs, index, packedMacLength)),
        name,
        siteName,
        isRegistered: !unregistered.has(index),
        bootId: started === null ? null : id,
        deviceId: started === null ? id : null,
        state: states[cells.states[index] ?? 0] ?? 'idle',
        kind: cells.kinds[index] ?? -1,
        startedAtMs: started === null ? 0 : sinceMs + started * tenthMs,
        tookMs: (cells.tookTenths[index] ?? 0) * tenthMs,
        phaseMs: (cells.phaseTenths[index] ?? 0) * tenthMs,
      }
    }),
  }
}

const tenthMs = 100

function keyOf(siteId: string, packedMac: string): string {
  return `${siteId} ${packedMac}`
}

/** Changes were sent up to this much before an answer that does not have them: a read takes a moment. */
const readMs = 5_000

/** The model with these boots in their newest state; those that are older than the answer change nothing. */
export function withBoots({ storm, cells }: StormModel, boots: Iterable<BootSummary>): StormModel {
  const readAtMs = Date.parse(storm.at) - readMs
  const changed = [...boots].filter(({ reportedAt }) => Date.parse(reportedAt) >= readAtMs)
  if (changed.length === 0) return { storm, cells }
  const byKey = new Map(cells.map(({ key }, index) => [key, index]))
  const next = [...cells]
  const states = new Set<string>(storm.states)
  for (const boot of changed) {
    const index = byKey.get(keyOf(boot.siteId, packMac(boot.mac)))
    const cell = index === undefined ? undefined : next[index]
    if (index === undefined || !cell || !concerns(storm, cell, boot)) continue
    const id = packId(boot.id)
    const state = boot.outcome ?? boot.lastPhase ?? 'firmware'
    next[index] = {
      ...cell,
      bootId: id,
      deviceId: null,
      state: states.has(state) ? state : 'firmware',
      // A change does not name what the boot reads: the next answer does.
      kind: cell.bootId === id ? cell.kind : -1,
      startedAtMs: Date.parse(boot.startedAt),
      tookMs: Math.round(boot.totalUs / 1000),
      phaseMs: boot.outcome === null ? Math.round((boot.phases.at(-1)?.startUs ?? 0) / 1000) : 0,
    }
  }
  return { storm, cells: next }
}

/** A run's device has one boot in the run, and others after it. */
function concerns(storm: Storm, cell: StormCell, boot: BootSummary): boolean {
  if (boot.generated || cell.isRegistered !== (boot.deviceId !== null)) return false
  if (cell.bootId === packId(boot.id)) return true
  const startedAtMs = Date.parse(boot.startedAt)
  if (startedAtMs < Date.parse(storm.since)) return false
  if (storm.run === null) return startedAtMs > cell.startedAtMs
  return cell.bootId === null || cell.state === 'superseded'
}

/** The phases of a boot in progress, in their order. */
export const bootingStates = ['firmware', 'dhcp', 'nbp', 'loader', 'stage1', 'breather', 'stage2'] as const
const booting = new Set<StormState>(bootingStates)

export function isBooting({ state, bootId }: Pick<StormCell, 'state' | 'bootId'>): boolean {
  return bootId !== null && booting.has(state)
}

/** Since the boot's start; its whole length once it is over; null without one. */
export function elapsedMsOf(cell: StormCell, nowMs: number): number | null {
  if (cell.bootId === null) return null
  return isBooting(cell) ? Math.max(cell.tookMs, nowMs - cell.startedAtMs) : cell.tookMs
}
