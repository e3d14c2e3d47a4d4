import { randomUUID } from 'node:crypto'
import { addsModules, edgeOnlineWithinMs, importsEmptyDisks, importsUploads, importsUrls } from '@bootfarm/proto/uplink'
import type { z } from 'zod'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { heartbeatOf } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { byteText } from '../rules/byte-text.ts'
import { askStore, edgesHolding, type ImagesEdge, readImagesEdge, type StoreOrder } from '../store/public.ts'
import { requireComplete } from '../upload/public.ts'
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
 * Makes a version from an image in an edge's store, from an upload, from what is at a URL, or of an empty disk. Throws
 * `not_found`; `invalid` for no source or several, for boot files that exclude each other, for a vDisk of another farm
 * than the edge's, and for a parent that is no sealed version of the vDisk, or boot files of a version of another farm;
 * `conflict` for an edge that does not support it or does not hold these versions, and for an upload that is not
 * complete.
 */
export function importVersion(context: ServiceContext, input: z.output<typeof importInput>): Promise<VersionWithJobs> {
  const { vdiskId, edgeId, sourcePath, uploadId, url, sha256, emptySizeBytes, ...rest } = input
  const { bootFiles, modules, bootVersionId, ...fields } = rest
  const problem = sourceProblem(input) ?? bootFilesProblem(input)
  if (problem) throw new AppError('invalid', { public: problem })
  return changeVdiskVersions(context, { vdiskId }, async (open) => {
    const edge = await readImagesEdge(context, edgeId)
    if (open.vdisk.farmId !== edge.site.farmId)
      throw new AppError('invalid', {
        public: `${edge.name} belongs to another farm than ${open.vdisk.name}, so its devices could not boot the version. Import it on an edge of the vDisk’s farm.`,
      })
    if (modules.length > 0) requireAbility(edge, { word: addsModules, text: 'add drivers to an import' })
    const source = await sourceOf(context, { edge, vdiskId, sourcePath, uploadId, url, sha256, emptySizeBytes })
    if (bootVersionId) await requireBootVersion(context, { farmId: open.vdisk.farmId, edge, bootVersionId })
    if (fields.parentVersionId) await requireParent(context, { vdiskId, edge, parentVersionId: fields.parentVersionId })
    const isBlank = emptySizeBytes !== null
    if (isBlank && fields.state === 'released')
      throw new AppError('invalid', {
        public: 'An empty disk boots nothing, and cannot be released. Leave it in test.',
      })
    const made = await createUnsealed(context, open, { ...fields, sizeBytes: 0n, ...(isBlank ? { isBlank } : {}) })
    return askAll(context, made, [
      {
        edgeId,
        kind: 'import',
        vdiskId,
        versionId: made,
        ...source,
        bootFiles: bootFiles === 'image' ? null : bootFiles,
        baseVersionId: bootVersionId,
        modules,
      },
    ])
  })
}

type BootFilesInput = Pick<
  z.output<typeof importInput>,
  | 'bootFiles'
  | 'modules'
  | 'kernelPath'
  | 'initrdPath'
  | 'commandLine'
  | 'parentVersionId'
  | 'bootVersionId'
  | 'emptySizeBytes'
>

function bootFilesProblem(input: BootFilesInput): string | null {
  const { bootFiles, modules, kernelPath, initrdPath, commandLine, parentVersionId, bootVersionId } = input
  const isGiven = kernelPath !== null || initrdPath !== null
  if (bootVersionId !== null && (isGiven || bootFiles !== 'image' || modules.length > 0))
    return 'A version that boots with the kernel of another one needs no other boot files. Leave them out.'
  if (input.emptySizeBytes !== null && parentVersionId !== null)
    return 'An empty disk has nothing in common with a parent. Leave the parent out.'
  if (input.emptySizeBytes !== null && bootFiles === 'image' && kernelPath === null && bootVersionId === null)
    return 'An empty disk has no kernel. Name a version whose kernel and initramfs it boots with.'
  if (bootFiles === 'none' && (isGiven || commandLine))
    return 'A disk with its own boot loader needs no kernel, initramfs or kernel command line. Leave them out.'
  if (bootFiles === 'parent' && parentVersionId === null)
    return 'The version can boot like its parent only if it has one. Name the parent version.'
  if (bootFiles === 'parent' && isGiven)
    return 'A version that boots like its parent needs no kernel and no initramfs. Leave them out.'
  if (modules.length > 0 && (isGiven || bootFiles !== 'image'))
    return 'Drivers are added to an initramfs that is made from the image. Leave them out, or the other boot files.'
  return null
}

type SourceInput = Pick<z.output<typeof importInput>, 'sourcePath' | 'uploadId' | 'url' | 'sha256' | 'emptySizeBytes'>

function sourceProblem({ sourcePath, uploadId, url, sha256, emptySizeBytes }: SourceInput): string | null {
  const count = [sourcePath, uploadId, url, emptySizeBytes].filter((one) => one !== null).length
  if (count !== 1)
    return 'Name one image: a path in the store of the edge, an upload, a URL, or the size of an empty disk.'
  return sha256 !== null && url === null ? 'The SHA-256 belongs to a URL. Leave it out for other images.' : null
}

async function sourceOf(
  context: ServiceContext,
  source: SourceInput & { edge: ImagesEdge; vdiskId: string },
): Promise<Partial<StoreOrder>> {
  const { edge, vdiskId, sourcePath, uploadId, url, sha256, emptySizeBytes } = source
  if (emptySizeBytes !== null) {
    requireAbility(edge, { word: importsEmptyDisks, text: 'make empty disks' })
    return { sourceSizeBytes: BigInt(emptySizeBytes) }
  }
  if (url !== null) {
    requireAbility(edge, { word: importsUrls, text: 'fetch images from a URL' })
    return { sourceUrl: url, sourceSha256: sha256 }
  }
  if (uploadId === null) return { sourcePath }
  requireAbility(edge, { word: importsUploads, text: 'import uploads' })
  const upload = await requireComplete(context, { vdiskId, uploadId })
  requireSpace(context, edge, Number(upload.sourceSizeBytes))
  return { uploadId, ...upload }
}

/** What an edge leaves free when it fetches the file of an import (core/uplink/image_fetch.zig). */
const freeBytesMin = 256 * 1024 ** 2

/**
 * The file of an upload is in the edge's store while it is imported. Throws `conflict` if it does not fit there, by
 * what the edge has reported; one that is away finds out itself.
 */
function requireSpace({ clock }: ServiceContext, edge: ImagesEdge, sizeBytes: number): void {
  const machine = heartbeatOf(edge)?.machine
  const isHeard = edge.heartbeatAt !== null && clock().getTime() - edge.heartbeatAt.getTime() < edgeOnlineWithinMs
  const needed = sizeBytes + freeBytesMin
  if (!machine || !isHeard || needed <= machine.storeFreeBytes) return
  throw conflict(
    `The store of ${edge.name} has ${byteText(machine.storeFreeBytes)} free, and the import needs at least ${byteText(needed)} for the file that it fetches. Free space there, or import the upload at another edge.`,
  )
}

/** Throws `conflict` for an edge whose release does not support it. */
function requireAbility(edge: ImagesEdge, { word, text }: { word: string; text: string }): void {
  const heartbeat = heartbeatOf(edge)
  // An edge that was never heard refuses the job when it comes, if it must.
  if (!heartbeat || (heartbeat.storeJobKinds ?? []).includes(word)) return
  throw conflict(`The edge ${edge.name} (release ${edge.agentVersion ?? 'unknown'}) cannot ${text}. Update it.`)
}

async function requireParent(
  { db, actor }: ServiceContext,
  { vdiskId, edge, parentVersionId }: { vdiskId: string; edge: ImagesEdge; parentVersionId: string },
): Promise<void> {
  const { organizationId } = actor
  const parent = await db.vdiskVersion.findUnique({
    where: ownRow(actor, parentVersionId),
    select: { vdiskId: true, number: true, sealedAt: true },
  })
  if (parent?.vdiskId !== vdiskId || parent.sealedAt === null)
    throw new AppError('invalid', { public: 'The parent must be a sealed version of the same vDisk.' })
  const edges = await edgesHolding(db, { organizationId, versionId: parentVersionId }, { isLayer: false })
  if (!edges.some(({ edgeId }) => edgeId === edge.id))
    throw conflict(
      `${edge.name} has not reported that its store holds version ${parent.number} completely. Import the image on an edge that holds it, or without a parent.`,
    )
}

async function requireBootVersion(
  { db, actor }: ServiceContext,
  { farmId, edge, bootVersionId }: { farmId: string; edge: ImagesEdge; bootVersionId: string },
): Promise<void> {
  requireAbility(edge, { word: importsEmptyDisks, text: 'take the boot files of another version' })
  const { organizationId } = actor
  const version = await db.vdiskVersion.findUnique({
    where: ownRow(actor, bootVersionId),
    select: { number: true, sealedAt: true, vdisk: { select: { name: true, farmId: true } } },
  })
  if (version?.vdisk.farmId !== farmId || version.sealedAt === null)
    throw new AppError('invalid', { public: 'The version with the boot files must be a sealed one of the same farm.' })
  const edges = await edgesHolding(db, { organizationId, versionId: bootVersionId }, { isLayer: false })
  if (!edges.some(({ edgeId }) => edgeId === edge.id))
    throw conflict(
      `${edge.name} has not reported that its store holds ${version.vdisk.name} version ${version.number}. Name a version that it holds.`,
    )
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
  isBlank?: boolean
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
