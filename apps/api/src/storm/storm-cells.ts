import type { StormBoot, StormDevice } from './read-storm-rows.ts'
import { packedIdLength, type Storm, type StormState, stormStates } from './schema.ts'

const noId = '.'.repeat(packedIdLength)
const indexOf = new Map<string, number>(stormStates.map((state, index) => [state, index]))

interface Input {
  devices: StormDevice[]
  boots: Map<string, StormBoot>
  kindIndexOf: (boot: StormBoot) => number
  since: Date
}

/** One index of every column for each device, in the order of the sites' and the devices' names. */
export function stormCellsOf({ devices, boots, kindIndexOf, since }: Input): Pick<Storm, 'cells' | 'sites'> {
  const { compare } = new Intl.Collator('en', { numeric: true })
  const sorted = devices.toSorted((a, b) => compare(a.siteName, b.siteName) || compare(a.name, b.name))
  const sites: Storm['sites'] = []
  const siteIndex = new Map<string, number>()
  for (const { siteId, siteName } of sorted) {
    if (siteIndex.has(siteId)) continue
    siteIndex.set(siteId, sites.length)
    sites.push({ id: siteId, name: siteName })
  }
  const bootOf = sorted.map(({ bootId }) => (bootId === null ? undefined : boots.get(bootId)))
  return {
    sites,
    cells: {
      names: sorted.map(({ name }) => name),
      deviceIds: sorted.map(({ id }) => packedId(id)).join(''),
      bootIds: bootOf.map((boot) => (boot ? packedId(boot.id) : noId)).join(''),
      states: sorted.map((device, index) => indexOf.get(stateOf(device, bootOf[index])) ?? 0),
      sites: sorted.map(({ siteId }) => siteIndex.get(siteId) ?? 0),
      kinds: bootOf.map((boot) => (boot ? kindIndexOf(boot) : -1)),
      startedMs: bootOf.map((boot) => (boot ? boot.startedAt.getTime() - since.getTime() : 0)),
      tookMs: bootOf.map((boot) => (boot ? usToMs(boot.totalUs) : 0)),
      phaseMs: bootOf.map((boot) => (boot?.outcome === null ? usToMs(boot.phases.at(-1)?.startUs ?? 0) : 0)),
    },
  }
}

function stateOf({ isQueued, runState }: StormDevice, boot: StormBoot | undefined): StormState {
  // A device that is ordered to boot again shows that, once its boot is over; a run has one boot of each.
  const isOrderedAgain = isQueued && runState === null && boot?.outcome !== null
  if (boot && !isOrderedAgain) return stateOfBoot(boot)
  if (runState === 'skipped') return 'skipped'
  if (runState === 'not_seen') return 'no_response'
  if (runState === 'failed') return 'failed'
  if (runState === 'sent') return 'firmware'
  return isQueued || runState === 'waiting' ? 'queued' : 'idle'
}

/** A phase of a newer edge counts as the first one. */
function stateOfBoot({ outcome, lastPhase }: StormBoot): StormState {
  if (outcome !== null) return outcome
  return lastPhase !== null && indexOf.has(lastPhase) ? (lastPhase as StormState) : 'firmware'
}

function packedId(id: string): string {
  return Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')
}

export function usToMs(us: bigint | number): number {
  return Math.max(0, Math.round(Number(us) / 1000))
}
