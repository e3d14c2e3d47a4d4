import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleDevices } from '../access/visible.ts'
import { escapeLike } from '../context/keyset.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { memoryRange } from '../rules/device/memory-size.ts'
import type { bootFilterInput } from './schema.ts'

/** The filters of every list of boots, as a condition on rows that have no relations. */

type Filter = Omit<z.output<typeof bootFilterInput>, 'sort'>
type Context = Pick<ServiceContext, 'db' | 'actor'>

/** More devices would make a longer statement than PostgreSQL plans quickly. */
const searchedDevicesMax = 5_000
/** The protocol of PostgreSQL carries at most 65,535 values, and the actor's own devices may be others. */
const collectionDevicesMax = 20_000

/** A part of a MAC address as rows hold it: nothing that LIKE takes for a wildcard. */
const addressPart = /^[0-9a-f:]+$/

const originFilters = {
  device: { simulated: false, generated: false },
  simulated: { simulated: true, generated: false },
  generated: { generated: true },
}

/** Throws `invalid` for a search or a collection of too many devices. */
export async function whereOfFilter(context: Context, filter: Filter): Promise<Prisma.BootWhereInput> {
  const placed = await Promise.all([
    ofFarm(context, filter.farmId),
    ofEdge(context, filter.edgeId),
    ofCollection(context, filter.collectionId),
    ofSearch(context, filter.search),
  ])
  return { AND: [...placed, ofOwnColumns(filter)] }
}

function ofOwnColumns(filter: Filter): Prisma.BootWhereInput {
  const { deviceId, siteId, vdiskId, versionId, failedCause, origin, durationUsMin, durationUsMax } = filter
  const { clientArch, reads, hour, processors, memoryGib, networkCard, hardwareModel, storage } = filter
  const { edgeRelease, segment } = filter
  const isTimed = durationUsMin !== undefined || durationUsMax !== undefined
  return {
    ...outcomeFilter(filter.outcome),
    ...(deviceId ? { deviceId } : {}),
    ...(siteId ? { siteId } : {}),
    ...(vdiskId ? { vdiskId } : {}),
    ...(versionId ? { versionId } : {}),
    // Every boot with a cause has this outcome, and there is an index by it.
    ...(failedCause ? { AND: [{ outcome: 'failed', failedCause }] } : {}),
    ...(origin ? originFilters[origin] : {}),
    ...(clientArch === undefined ? {} : { clientArch }),
    ...(reads ? { isCold: reads === 'cold' } : {}),
    ...(hour === undefined ? {} : { hour }),
    ...(processors ? { processors } : {}),
    ...(memoryGib ? { memoryMib: memoryRange(memoryGib) } : {}),
    ...(networkCard ? { networkCard } : {}),
    ...(hardwareModel ? { hardwareModel } : {}),
    ...(storage ? { storage } : {}),
    ...(edgeRelease ? { edgeRelease } : {}),
    ...(segment ? { segment } : {}),
    ...(isTimed ? { durationUs: { gte: durationUsMin ?? 0, lte: durationUsMax ?? Number.MAX_SAFE_INTEGER } } : {}),
  }
}

function outcomeFilter(outcome: Filter['outcome']): Prisma.BootWhereInput {
  if (!outcome) return {}
  if (outcome === 'booting') return { outcome: null }
  return { outcome: outcome === 'unsuccessful' ? { in: ['failed', 'silent'] } : outcome }
}

async function ofFarm({ db, actor }: Context, farmId: string | undefined): Promise<Prisma.BootWhereInput> {
  if (!farmId) return {}
  const { organizationId } = actor
  const sites = await db.site.findMany({ where: { organizationId, farmId }, select: { id: true } })
  // The condition costs as much as the farm has sites, and says nothing where there is no other farm.
  if (sites.length > 0 && sites.length === (await db.site.count({ where: { organizationId } }))) return {}
  return { siteId: { in: sites.map(({ id }) => id) } }
}

/** Boots have an index by site, not by edge. */
async function ofEdge({ db, actor }: Context, edgeId: string | undefined): Promise<Prisma.BootWhereInput> {
  if (!edgeId) return {}
  const edge = await db.edge.findUnique({ where: ownRow(actor, edgeId), select: { siteId: true } })
  return edge ? { edgeId, siteId: edge.siteId } : nothing
}

async function ofCollection({ db, actor }: Context, collectionId: string | undefined): Promise<Prisma.BootWhereInput> {
  if (!collectionId) return {}
  const where = { organizationId: actor.organizationId, collectionId }
  const devices = await db.device.findMany({ where, take: collectionDevicesMax + 1, select: { id: true } })
  if (devices.length > collectionDevicesMax)
    throw tooMany('collectionId', `The collection has more than ${collectionDevicesMax} devices. Filter by its site.`)
  return { deviceId: { in: devices.map(({ id }) => id) } }
}

async function ofSearch({ db, actor }: Context, search: string | undefined): Promise<Prisma.BootWhereInput> {
  if (!search) return {}
  const address = search.toLowerCase().replaceAll('-', ':')
  // An alternative that no row can meet would still be looked for in each of them.
  const ofAddress = addressPart.test(address) ? [{ mac: { contains: address } }] : []
  const devices = await db.device.findMany({
    where: {
      organizationId: actor.organizationId,
      OR: [{ name: { contains: escapeLike(search), mode: 'insensitive' } }, ...ofAddress],
      AND: [visibleDevices(actor)],
    },
    take: searchedDevicesMax + 1,
    select: { id: true },
  })
  if (devices.length > searchedDevicesMax)
    throw tooMany('search', `More than ${searchedDevicesMax} devices match. Enter more of the name or address.`)
  const ofDevices = { deviceId: { in: devices.map(({ id }) => id) } }
  return { OR: [ofDevices, ...ofAddress.map((part) => ({ deviceId: null, ...part }))] }
}

const nothing: Prisma.BootWhereInput = { siteId: { in: [] } }

function tooMany(field: string, message: string): AppError {
  return new AppError('invalid', { public: message, fields: [{ in: 'query', field, message }] })
}
