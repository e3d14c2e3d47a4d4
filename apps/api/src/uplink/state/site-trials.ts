import { type DesiredState, trialsMax, tuningsMax } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge, DbOrTransaction } from '../../context/service-context.ts'
import { overlaid } from '../../rules/boot-settings.ts'

/** The lists of settings of a state, each once. */
export class Tunings {
  readonly all: string[][] = []
  #indexes = new Map<string, number>()

  /** Null: there are no settings, or the state has no place for more lists. */
  indexOf(settings: string[]): number | null {
    if (settings.length === 0) return null
    const key = settings.join(' ')
    const known = this.#indexes.get(key)
    if (known !== undefined) return known
    if (this.all.length >= tuningsMax) return null
    this.#indexes.set(key, this.all.length)
    return this.all.push(settings) - 1
  }

  /** The same for a trial: one without settings has a list, too. */
  indexOfTrial(settings: string[]): number | null {
    if (settings.length > 0) return this.indexOf(settings)
    const known = this.all.findIndex((one) => one.length === 0)
    if (known >= 0) return known
    return this.all.length < tuningsMax ? this.all.push([]) - 1 : null
  }
}

/** A device that the state lists. */
interface Listed {
  id: string
  collection: { bootSettings: string[] }
}

type Trials = NonNullable<DesiredState['trials']>

/** Trials whose devices were asked to boot, and the first instant at which one of them ends. */
export async function readSiteTrials(
  db: DbOrTransaction,
  { organizationId, siteId }: Pick<AuthenticatedEdge, 'organizationId' | 'siteId'>,
  { now, devices, tunings }: { now: Date; devices: Listed[]; tunings: Tunings },
): Promise<{ trials: Trials; endsAt: Date | null }> {
  const rows = await db.experimentTrial.findMany({
    where: { organizationId, siteId, state: 'ordered', untilAt: { gt: now } },
    orderBy: [{ untilAt: 'asc' }, { id: 'asc' }],
    take: trialsMax,
    select: { id: true, deviceId: true, settings: true, untilAt: true },
  })
  const deviceOf = new Map(devices.map((device) => [device.id, device]))
  const trials: Trials = []
  let endsAt: Date | null = null
  for (const { id, deviceId, settings, untilAt } of rows) {
    const device = deviceOf.get(deviceId)
    if (!device || !untilAt) continue
    const tuning = tunings.indexOfTrial(overlaid(device.collection.bootSettings, settings))
    if (tuning === null) continue
    trials.push({ id, deviceId, tuning, untilUnixMs: untilAt.getTime() })
    if (!endsAt || untilAt < endsAt) endsAt = untilAt
  }
  return { trials, endsAt }
}
