import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { warningOf } from './forecast.ts'
import { forecastOf, readSpaces } from './read-space.ts'
import type { SpaceView } from './schema.ts'

const dayMs = 86_400_000

/** Throws `not_found`. */
export async function getSpace({ db, clock, actor }: ServiceContext, edgeId: string): Promise<SpaceView> {
  const { organizationId } = actor
  const now = clock()
  const edge = await db.edge.findUnique({ where: ownRow(actor, edgeId), select: { id: true } })
  const [found] = edge ? await readSpaces(db, { organizationId, edgeId, now }) : []
  if (!found) throw new AppError('not_found')
  const { space, pendingBytes, fillingToldAt, samples } = found
  const forecast = forecastOf(found, now)
  const days = forecast?.days ?? null
  return {
    freeBytes: space?.freeBytes ?? null,
    totalBytes: space?.totalBytes ?? null,
    usableBytes: forecast?.usable ?? null,
    pendingBytes,
    bytesPerDay: forecast?.bytesPerDay ?? null,
    fullAt: days === null ? null : new Date(now.getTime() + days * dayMs).toISOString(),
    warning: space && warningOf(space, { days, pendingBytes, isTold: fillingToldAt !== null }),
    samples: samples.map(({ at, freeBytes, totalBytes }) => ({ at: at.toISOString(), freeBytes, totalBytes })),
  }
}
