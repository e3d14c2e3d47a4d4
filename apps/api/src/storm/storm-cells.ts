import type { StormBoot, StormDevice } from './read-storm-rows.ts'
import { type Storm, type StormState, stormStates } from './schema.ts'

const indexOf = new Map<string, number>(stormStates.map((state, index) => [state, index]))

const tenthMs = 100

interface Input {
  devices: StormDevice[]
  boots: Map<string, StormBoot>
  kindIndexOf: (boot: StormBoot) => number
  since: Date
}

/** One index of every column for each device, in the order of the sites' and the devices' names. */
export function stormCellsOf({ devices, boots, kindIndexOf, since }: Input): Pick<Storm, 'cells' | 'sites'> {
  const { compare } = new Intl.Collator('en', { numeric: true })
  // Sites of one name in two farms stay apart.
  const bySite = (a: StormDevice, b: StormDevice) =>
    compare(a.siteName, b.siteName) || (a.siteId < b.siteId ? -1 : Number(a.siteId > b.siteId))
  const sorted = devices.toSorted((a, b) => bySite(a, b) || compare(a.name, b.name))
  const sites: Storm['sites'] = []
  for (const { siteId, siteName } of sorted) {
    const last = sites.at(-1)
    if (last?.id === siteId) last.deviceCount += 1
    else sites.push({ id: siteId, name: siteName, deviceCount: 1 })
  }
  const bootOf = sorted.map(({ bootId }) => (bootId === null ? undefined : boots.get(bootId)))
  return {
    sites,
    cells: {
      names: sorted.map(({ name }) => name),
      unregistered: sorted.flatMap(({ isRegistered }, index) => (isRegistered ? [] : index)),
      macs: sorted.map(({ mac }) => mac.replaceAll(':', '')).join(''),
      ids: sorted.map(({ id }, index) => packedId(bootOf[index]?.id ?? id)).join(''),
      states: sorted.map((device, index) => indexOf.get(stateOf(device, bootOf[index])) ?? 0),
      kinds: bootOf.map((boot) => (boot ? kindIndexOf(boot) : -1)),
      startedTenths: bootOf.map((boot) =>
        boot ? Math.round((boot.startedAt.getTime() - since.getTime()) / tenthMs) : null,
      ),
      tookTenths: bootOf.map((boot) => (boot ? usToTenths(boot.totalUs) : 0)),
      phaseTenths: bootOf.map((boot) => (boot?.outcome === null ? usToTenths(boot.phases.at(-1)?.startUs ?? 0) : 0)),
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

function usToTenths(us: bigint | number): number {
  return Math.max(0, Math.round(Number(us) / 1000 / tenthMs))
}
