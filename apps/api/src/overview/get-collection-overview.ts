import type { Prisma } from '@bootfarm/db'
import { visibleBoots, visibleDevices } from '../access/visible.ts'
import { countBoots, readBootDays } from '../boot/public.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { dayMs } from '../rules/utc-day.ts'
import { lastDaySince } from './boot-figures.ts'
import type { CollectionOverview } from './schema.ts'

/** As many as the list of boots of a collection takes. */
const devicesMax = 20_000

/** Counts the same boots as the lists with `collectionId` have. Throws `not_found`, `invalid` for a huge collection. */
export async function getCollectionOverview(
  context: ServiceContext,
  collectionId: string,
): Promise<CollectionOverview> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const collection = await db.collection.findUnique({ where: ownRow(actor, collectionId), select: { id: true } })
  if (!collection) throw new AppError('not_found')
  const where = { organizationId, collectionId }
  const [deviceCount, devices, visible, days] = await Promise.all([
    db.device.count({ where: { ...where, AND: [visibleDevices(actor)] } }),
    db.device.findMany({ where, take: devicesMax + 1, select: { id: true } }),
    visibleBoots(context),
    readBootDays(context),
  ])
  if (devices.length > devicesMax)
    throw new AppError('invalid', { public: `The collection has more than ${devicesMax} devices.` })
  const ofCollection = { AND: [visible, { deviceId: { in: devices.map(({ id }) => id) } }] }
  const since = lastDaySince(clock())
  const ofLastDay = {
    organizationId,
    // Boots that started since then arrived on that day or later.
    receivedOn: {
      in: days.map(({ receivedOn }) => receivedOn).filter((day) => day.getTime() + dayMs > since.getTime()),
    },
    startedAt: { gte: since },
    AND: ofCollection,
  }
  const bootsBooting = await countBoots(context, days, { AND: [ofCollection, { outcome: null }] })
  return { deviceCount, bootsBooting, last24Hours: { since: since.toISOString(), ...(await timesOf(db, ofLastDay)) } }
}

type Times = Omit<CollectionOverview['last24Hours'], 'since'>

async function timesOf(db: ServiceContext['db'], where: Prisma.BootWhereInput): Promise<Times> {
  const groups = await db.boot.groupBy({ by: ['outcome', 'generated'], where, _count: true })
  const sum = (matches: (group: (typeof groups)[number]) => boolean) =>
    groups.filter(matches).reduce((total, { _count }) => total + _count, 0)
  const readyCount = sum(({ outcome }) => outcome === 'ready')
  return {
    readyCount,
    failedCount: sum(({ outcome }) => outcome === 'failed' || outcome === 'silent'),
    noResponseCount: sum(({ outcome }) => outcome === 'no_response'),
    generatedCount: sum(({ generated }) => generated),
    p50Us: await readyAt(db, where, Math.floor(readyCount * 0.5)),
    p95Us: await readyAt(db, where, Math.floor(readyCount * 0.95)),
  }
}

/** How long the ready boot at this place took, from the quickest on; null if there are not as many. */
async function readyAt(db: ServiceContext['db'], where: Prisma.BootWhereInput, index: number): Promise<number | null> {
  const boot = await db.boot.findFirst({
    where: { AND: [where, { outcome: 'ready', durationUs: { not: null } }] },
    orderBy: { durationUs: 'asc' },
    skip: index,
    select: { durationUs: true },
  })
  return boot?.durationUs === null || boot?.durationUs === undefined ? null : Number(boot.durationUs)
}
