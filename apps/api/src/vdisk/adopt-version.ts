import { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { ownRow, type ServiceContext, withTrash } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type EdgeImageRow, type ImagesEdge, readImagesEdge, requireAdoptable } from '../store/public.ts'
import { createVdisk } from './change-vdisk.ts'
import { askAll, createUnsealed } from './make-version.ts'
import { changeVdiskVersions, conflict, type OpenVdisk } from './open-version.ts'
import type { adoptInput, VersionWithJobs } from './version-schema.ts'

/**
 * Makes a version from an image that an edge has and no vDisk: under the id that it has there, so that nothing of it is
 * written again. The edge reads all of it first. Throws `not_found`; `invalid` for a vDisk of another farm than the
 * edge's; `conflict` for an image that is a version already, is incomplete or damaged, was made for another
 * organization, or whose edge does not support such jobs.
 */
export async function adoptVersion(
  context: ServiceContext,
  { edgeId, versionId, vdiskId, farmId, name, ...fields }: z.output<typeof adoptInput>,
): Promise<VersionWithJobs> {
  const edge = await readImagesEdge(context, edgeId)
  const ofOtherFarm = `${edge.name} belongs to another farm. Adopt its images there.`
  if (farmId !== null && farmId !== edge.site.farmId) throw new AppError('invalid', { public: ofOtherFarm })
  await requireFreeId(context, edge, versionId)
  const image = await requireAdoptable(context, edge, versionId)
  const id = vdiskId ?? (await createVdisk(context, newVdisk(farmId, name))).id
  return changeVdiskVersions(context, { vdiskId: id }, async (open) => {
    if (open.vdisk.farmId !== edge.site.farmId) throw new AppError('invalid', { public: ofOtherFarm })
    const made = await createFrom(context, open, { edge, image, fields })
    return askAll(context, made, [{ edgeId, kind: 'adopt', vdiskId: id, versionId }])
  })
}

/** The input contains both if it names no vDisk. */
function newVdisk(farmId: string | null, name: string | null) {
  return { farmId: farmId ?? '', name: name ?? '', note: '', storeId: null }
}

/** Throws `conflict` for one that is a version here: which, as far as the edge's farm goes. */
async function requireFreeId(context: ServiceContext, edge: ImagesEdge, versionId: string): Promise<void> {
  const { db, actor } = context
  const version = await withTrash(db, () =>
    db.vdiskVersion.findUnique({
      where: ownRow(actor, versionId),
      select: {
        number: true,
        deletionId: true,
        sealedAt: true,
        vdisk: { select: { name: true, farmId: true, deletionId: true } },
      },
    }),
  )
  if (!version) return
  const { number, sealedAt, vdisk } = version
  const words = vdisk.farmId === edge.site.farmId ? `version ${number} of ${vdisk.name}` : 'a version of another farm'
  if (version.deletionId !== null || vdisk.deletionId !== null)
    throw conflict(`This image is ${words}, which is in the trash. Restore it from there.`)
  throw conflict(sealedAt === null ? `It is already being adopted as ${words}.` : `It is already ${words}.`)
}

async function createFrom(
  context: ServiceContext,
  open: OpenVdisk,
  from: {
    edge: ImagesEdge
    image: EdgeImageRow
    fields: Pick<z.output<typeof adoptInput>, 'note' | 'labels' | 'state'>
  },
): Promise<string> {
  const { db, actor } = context
  const { organizationId } = actor
  const { versionId, parentVersionId, sizeBytes, root } = from.image
  const parent = await db.vdiskVersion.findFirst({
    where: { organizationId, vdiskId: open.vdisk.id, id: parentVersionId ?? versionId },
    select: { id: true },
  })
  try {
    await createUnsealed(context, open, {
      ...from.fields,
      id: versionId,
      sizeBytes: sizeBytes ?? 0n,
      commandLine: '',
      parentVersionId: parent?.id ?? null,
      adoptedFrom: from.edge.name,
    })
  } catch (error) {
    if (error instanceof Prisma.PrismaClientKnownRequestError && error.code === 'P2002')
      throw conflict('Someone else has just adopted it.')
    throw error
  }
  // Wherever the same bytes are stored under this id; the next inventories report it themselves.
  await db.$executeRaw`
    insert into edge_version (organization_id, edge_id, version_id, state, root, own_bytes, shared_bytes, reclaimable_bytes, reported_at, scan)
    select organization_id, edge_id, version_id, state, root, own_bytes, shared_bytes, reclaimable_bytes, reported_at, scan from edge_image
    where organization_id = ${organizationId}::uuid and version_id = ${versionId}::uuid and root = ${root}`
  return versionId
}
