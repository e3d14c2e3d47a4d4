import { AppError } from '../errors/app-error.ts'
import { findBoots, type ReadContext, readPlainBoots } from './read-boots.ts'
import { type BootUsual, type TimedBoot, type UsualTimes, usualTimesOf } from './usual-times.ts'

/** Limits both queries: the newest boots of the newest days with boots. */
const bootsMax = 50
const daysMax = 64

/** How long boots of this one's device and version took before it. Throws `not_found`. */
export async function getUsual(context: ReadContext, bootId: string): Promise<BootUsual> {
  const { db, actor } = context
  const [boot] = await readPlainBoots(context, [bootId])
  if (!boot) throw new AppError('not_found')
  const days = await db.bootDay.findMany({
    where: { organizationId: actor.organizationId, receivedOn: { lte: boot.receivedOn } },
    orderBy: { receivedOn: 'desc' },
    take: daysMax,
    select: { receivedOn: true },
  })
  const read = async (of: { deviceId: string } | { vdiskId: string; versionId: string }): Promise<UsualTimes> => {
    const earlier = { outcome: 'ready' as const, generated: boot.generated, startedAt: { lt: boot.startedAt } }
    const rows = await findBoots(context, {
      where: { AND: [earlier, of] },
      oldestFirst: false,
      days: days.map(({ receivedOn }) => receivedOn),
      limit: bootsMax,
    })
    return usualTimesOf(rows.map(timed))
  }
  const { deviceId, vdiskId, versionId } = boot
  const [device, version] = await Promise.all([
    deviceId ? read({ deviceId }) : null,
    vdiskId && versionId ? read({ vdiskId, versionId }) : null,
  ])
  return { device, version }
}

/** Only `writeBoots` writes phases, from a report that zod validated. */
function timed({ totalUs, phases }: { totalUs: bigint; phases: unknown }): TimedBoot {
  return { totalUs: Number(totalUs), phases: phases as TimedBoot['phases'] }
}
