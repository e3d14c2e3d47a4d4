import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { cutPage, decodeCursor } from '../context/keyset.ts'
import { ownRow, type ServiceContext, withTrash } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { activeStates, whyNoWork } from './ask-store.ts'
import type { EdgeImageView, edgeImagePage, edgeImagesInput } from './schema.ts'

const imageSelect = {
  versionId: true,
  state: true,
  root: true,
  name: true,
  sizeBytes: true,
  madeAt: true,
  hasKernel: true,
  madeForId: true,
  parentVersionId: true,
  reportedAt: true,
  ownBytes: true,
  sharedBytes: true,
  reclaimableBytes: true,
} satisfies Prisma.EdgeImageSelect
export type EdgeImageRow = Prisma.EdgeImageGetPayload<{ select: typeof imageSelect }>

export interface ImagesEdge {
  id: string
  name: string
  revokedAt: Date | null
  heartbeat: unknown
  heartbeatAt: Date | null
  agentVersion: string | null
  site: { farmId: string }
}

/** Throws `not_found`. */
export async function readImagesEdge({ db, actor }: ServiceContext, edgeId: string): Promise<ImagesEdge> {
  const edge = await db.edge.findUnique({
    where: ownRow(actor, edgeId),
    select: {
      id: true,
      name: true,
      revokedAt: true,
      heartbeat: true,
      heartbeatAt: true,
      agentVersion: true,
      site: { select: { farmId: true } },
    },
  })
  if (!edge) throw new AppError('not_found', { public: 'There is no such edge.' })
  return edge
}

/** Returns the images in its store that are no version of any vDisk, by id. Throws `not_found`. */
export async function listEdgeImages(
  context: ServiceContext,
  { edgeId, cursor, limit }: z.output<typeof edgeImagesInput>,
): Promise<z.infer<typeof edgeImagePage>> {
  const { db, actor } = context
  const { organizationId } = actor
  const edge = await readImagesEdge(context, edgeId)
  const [, after = null] = decodeCursor(cursor) ?? []
  const rows = await withTrash(db, async () => {
    const ids = await db.$queryRaw<{ id: string }[]>`select version_id::text as id from edge_image as image
      where organization_id = ${organizationId}::uuid and edge_id = ${edgeId}::uuid
        and (${after}::uuid is null or version_id > ${after}::uuid)
        and not exists (select from vdisk_version where organization_id = image.organization_id and id = image.version_id)
      order by version_id limit ${limit + 1}`
    return db.edgeImage.findMany({
      where: { organizationId, edgeId, versionId: { in: ids.map(({ id }) => id) } },
      orderBy: { versionId: 'asc' },
      select: imageSelect,
    })
  })
  const parents = await readParents(context, edge, rows)
  const deleted = await deletedSoon(context, edge, rows)
  return cutPage(rows, limit, {
    item: (row) => ({
      ...viewOf(row),
      parent: parents.get(row.parentVersionId ?? '') ?? null,
      problem: whyNotAdopted(row, edge, { organizationId, isDeletedSoon: deleted.has(row.versionId) }),
    }),
    key: ({ versionId }) => ['', versionId],
  })
}

function viewOf(row: EdgeImageRow): Omit<EdgeImageView, 'parent' | 'problem'> {
  const { versionId, state, hasKernel } = row
  return {
    versionId,
    state,
    hasKernel,
    sizeBytes: row.sizeBytes === null ? null : Number(row.sizeBytes),
    madeAt: row.madeAt?.toISOString() ?? null,
    ownBytes: Number(row.ownBytes),
    sharedBytes: Number(row.sharedBytes),
    reclaimableBytes: Number(row.reclaimableBytes),
    untrusted: { name: row.name },
    reportedAt: row.reportedAt.toISOString(),
  }
}

/** Throws `not_found` for one that the edge has not named. */
export async function requireAdoptable(
  context: ServiceContext,
  edge: ImagesEdge,
  versionId: string,
): Promise<EdgeImageRow> {
  const { db, actor } = context
  const { organizationId } = actor
  const row = await db.edgeImage.findUnique({
    where: { organizationId_edgeId_versionId: { organizationId, edgeId: edge.id, versionId } },
    select: imageSelect,
  })
  if (!row) throw new AppError('not_found', { public: `The store of ${edge.name} has reported no such image.` })
  const isDeletedSoon = (await deletedSoon(context, edge, [row])).has(versionId)
  const problem = whyNotAdopted(row, edge, { organizationId, isDeletedSoon })
  if (problem) throw new AppError('conflict', { public: problem })
  return row
}

/** Null: it can be. */
function whyNotAdopted(
  { state, madeForId }: EdgeImageRow,
  edge: ImagesEdge,
  { organizationId, isDeletedSoon }: { organizationId: string; isDeletedSoon: boolean },
): string | null {
  if (state === 'importing')
    return 'The image is still being imported, or the import was interrupted. Finish it on the edge first.'
  if (state !== 'present') return 'The image is damaged. Import it again on the edge, or delete it there.'
  if (madeForId !== null && madeForId !== organizationId)
    return 'Its store was created for another organization. Export it there, and import it into a store of yours.'
  if (isDeletedSoon) return `${edge.name} is deleting it.`
  return whyNoWork(edge, 'adopt')
}

async function deletedSoon(
  { db, actor }: ServiceContext,
  edge: ImagesEdge,
  rows: EdgeImageRow[],
): Promise<Set<string>> {
  const jobs = await db.storeJob.findMany({
    where: {
      organizationId: actor.organizationId,
      edgeId: edge.id,
      kind: 'delete',
      state: activeStates,
      versionId: { in: rows.map(({ versionId }) => versionId) },
    },
    select: { versionId: true },
  })
  return new Set(jobs.flatMap(({ versionId }) => versionId ?? []))
}

async function readParents(
  { db, actor }: ServiceContext,
  { site: { farmId } }: ImagesEdge,
  rows: EdgeImageRow[],
): Promise<Map<string, NonNullable<EdgeImageView['parent']>>> {
  const parents = await db.vdiskVersion.findMany({
    where: {
      organizationId: actor.organizationId,
      id: { in: rows.flatMap(({ parentVersionId }) => parentVersionId ?? []) },
      vdisk: { farmId, deletionId: null },
    },
    select: { id: true, number: true, vdisk: { select: { id: true, name: true } } },
  })
  return new Map(parents.map(({ id, number, vdisk }) => [id, { vdiskId: vdisk.id, vdiskName: vdisk.name, number }]))
}
