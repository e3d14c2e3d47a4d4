import {
  type ScheduleOrder,
  scheduleInstantsMax,
  schedulesMax,
  stateInstantsMax,
  stateTargetsMax,
} from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../../context/service-context.ts'

/** A device as the state lists it, at its index there. */
interface ListedDevice {
  id: string
  collectionId: string
  tags: string[]
}

/**
 * Returns what the site's edges start by themselves: schedules with future instants or active runs. Nothing here
 * depends on the time, so that a state stays unchanged until somebody, or the job that renews instants, changes it. If
 * there is more than an edge accepts, the oldest schedules come first and each has fewer instants.
 */
export async function readSiteSchedules(
  db: DbOrTransaction,
  { organizationId, siteId, farmId }: { organizationId: string; siteId: string; farmId: string },
  devices: ListedDevice[],
): Promise<ScheduleOrder[]> {
  const rows = await db.schedule.findMany({
    where: {
      organizationId,
      farmId,
      OR: [{ siteId: null }, { siteId }],
      NOT: { instants: { isEmpty: true } },
    },
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
    take: schedulesMax,
    select: {
      id: true,
      action: true,
      power: true,
      ratePerMinute: true,
      instants: true,
      targets: { select: { deviceId: true, collectionId: true, tag: true } },
    },
  })
  const instantsMax = Math.min(scheduleInstantsMax, Math.floor(stateInstantsMax / Math.max(1, rows.length)))
  const indexes = indexDevices(devices)
  let room = stateTargetsMax
  return rows.flatMap(({ id, action, power, ratePerMinute, instants, targets }) => {
    const found = indexes(targets)
    if (found.length === 0 || found.length > room) return []
    room -= found.length
    const unixMs = instants.slice(0, instantsMax).map((at) => at.getTime())
    return [{ id, action, power, ratePerMinute, devices: found, instants: unixMs }]
  })
}

interface Target {
  deviceId: string | null
  collectionId: string | null
  tag: string | null
}

/** Returns the indexes of the devices that targets name, ascending. */
function indexDevices(devices: ListedDevice[]): (targets: Target[]) => number[] {
  const byKey = new Map<string, number[]>()
  const add = (key: string, index: number) => {
    const known = byKey.get(key)
    if (known) known.push(index)
    else byKey.set(key, [index])
  }
  for (const [index, { id, collectionId, tags }] of devices.entries()) {
    add(id, index)
    add(collectionId, index)
    for (const tag of tags) add(`tag ${tag}`, index)
  }
  return (targets) => {
    const found = new Set<number>()
    for (const { deviceId, collectionId, tag } of targets)
      for (const index of byKey.get(deviceId ?? collectionId ?? `tag ${tag}`) ?? []) found.add(index)
    return [...found].sort((a, b) => a - b)
  }
}
