import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { askStore, edgesHolding, readImagesEdge, type StoreOrder } from '../store/public.ts'
import { nextVersionNumber } from './next-number.ts'
import {
  changedVersionNow,
  changeVdiskVersions,
  changeVersion,
  conflict,
  nextVersions,
  type OpenVdisk,
  type OpenVersion,
} from './open-version.ts'
import type { importInput, mergeInput, VersionWithJobs } from './version-schema.ts'

/** People make no longer chains. */
const ancestorsMax = 1_000

/**
 * Makes a version that reads as this one and goes back to its base alone, or to nothing, at each edge that holds it; it
 * is in test once that is done. Older versions stay. Throws `not_found`; `conflict` for a version that is not sealed or
 * not in the store of any edge.
 */
export function mergeVersion(
  context: ServiceContext,
  { into, note, labels, ...seen }: z.output<typeof mergeInput>,
): Promise<VersionWithJobs> {
  return changeVersion(context, seen, async (open) => {
    const { db, actor } = context
    const { version, vdisk } = open
    const { organizationId } = actor
    nextVersions(open, { kind: 'merge', versionId: version.id })
    const edges = await edgesHolding(db, { organizationId, versionId: version.id }, { isLayer: false })
    if (edges.length === 0)
      throw conflict(`No edge has reported that its store holds version ${version.number} completely.`)
    const parentVersionId = into === 'base' ? null : await baseOf(context, open)
    const { sizeBytes, commandLine } = version
    const made = await createUnsealed(context, open, {
      state: 'test',
      sizeBytes,
      commandLine,
      parentVersionId,
      note,
      labels,
      mergedFrom: version.number,
    })
    return askAll(
      context,
      made,
      edges.map(({ edgeId }) => ({
        edgeId,
        kind: 'merge',
        vdiskId: vdisk.id,
        versionId: version.id,
        intoVersionId: made,
      })),
    )
  })
}

/**
 * Makes a version from a raw image in an edge's store. Throws `not_found`; `invalid` for a kernel or an initramfs of a
 * version that is to have none, and for a vDisk of another farm than the edge's; `conflict` for an edge that does not
 * support it.
 */
export function importVersion(
  context: ServiceContext,
  { vdiskId, edgeId, sourcePath, bootFiles, ...fields }: z.output<typeof importInput>,
): Promise<VersionWithJobs> {
  if (bootFiles === 'none' && (fields.kernelPath || fields.initrdPath || fields.commandLine))
    throw new AppError('invalid', {
      public: 'A disk with its own boot loader needs no kernel, initramfs or kernel command line. Leave them out.',
    })
  return changeVdiskVersions(context, { vdiskId }, async (open) => {
    const edge = await readImagesEdge(context, edgeId)
    if (open.vdisk.farmId !== edge.site.farmId)
      throw new AppError('invalid', {
        public: `${edge.name} belongs to another farm than ${open.vdisk.name}, so its devices could not boot the version. Import it on an edge of the vDisk’s farm.`,
      })
    const made = await createUnsealed(context, open, { ...fields, sizeBytes: 0n, parentVersionId: null })
    return askAll(context, made, [
      {
        edgeId,
        kind: 'import',
        vdiskId,
        versionId: made,
        sourcePath,
        bootFiles: bootFiles === 'image' ? null : bootFiles,
      },
    ])
  })
}

interface Unsealed {
  /** Absent: a new one. */
  id?: string
  state: 'test' | 'released'
  sizeBytes: bigint
  commandLine: string
  parentVersionId: string | null
  note: string
  labels: string[]
  kernelPath?: string | null
  initrdPath?: string | null
  mergedFrom?: number
  /** Name of the edge that has it. */
  adoptedFrom?: string
}

/** A version that is being made: nobody boots it before its edge has described it. */
export async function createUnsealed(
  context: ServiceContext,
  { vdisk, place, now }: OpenVdisk,
  { id = randomUUID(), mergedFrom, adoptedFrom, ...fields }: Unsealed,
): Promise<string> {
  const { db, actor } = context
  const { organizationId } = actor
  const number = await nextVersionNumber(db, { organizationId, vdiskId: vdisk.id })
  await db.vdiskVersion.create({
    data: {
      organizationId,
      id,
      vdiskId: vdisk.id,
      number,
      ...fields,
      createdAt: now,
      sealedAt: null,
      diskPath: `versions/${id}`,
    },
    select: { id: true },
  })
  await recordChange(context, {
    kind: 'version',
    id,
    name: `${vdisk.name} version ${number}`,
    place,
    before: null,
    after: {
      number,
      ...fields,
      ...(mergedFrom === undefined ? {} : { mergedFrom }),
      ...(adoptedFrom === undefined ? {} : { adoptedFrom }),
    },
  })
  return id
}

export async function askAll(
  context: ServiceContext,
  versionId: string,
  orders: StoreOrder[],
): Promise<VersionWithJobs> {
  const jobIds: string[] = []
  for (const order of orders) jobIds.push(await askStore(context, order))
  return { ...(await changedVersionNow(context, versionId)), jobIds }
}

/** The first one of those that it was made from; null where it is that itself, or they are gone. */
async function baseOf({ db, actor }: ServiceContext, { version }: OpenVersion): Promise<string | null> {
  let base: string | null = null
  let next = version.parentVersionId
  for (let count = 0; next !== null && count < ancestorsMax; count++) {
    const parent: { id: string; parentVersionId: string | null } | null = await db.vdiskVersion.findUnique({
      where: ownRow(actor, next),
      select: { id: true, parentVersionId: true },
    })
    if (parent) base = parent.id
    next = parent?.parentVersionId ?? null
  }
  return base
}
