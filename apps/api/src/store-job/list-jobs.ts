import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { visibleDevices, visibleStoreJobs } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { activeStates, shownUrl } from '../store/public.ts'
import { type StoreJobView, type storeJobListInput, type storeJobPage, storeJobSort } from './schema.ts'

const jobSelect = {
  id: true,
  kind: true,
  state: true,
  vdiskId: true,
  versionId: true,
  intoVersionId: true,
  deviceId: true,
  sourcePath: true,
  sourceUrl: true,
  exportFormat: true,
  progressBytes: true,
  totalBytes: true,
  message: true,
  askedByName: true,
  askedAt: true,
  startedAt: true,
  endedAt: true,
  edge: { select: { id: true, name: true, site: { select: { id: true, name: true } } } },
} satisfies Prisma.StoreJobSelect
type JobRow = Prisma.StoreJobGetPayload<{ select: typeof jobSelect }>

export async function listStoreJobs(
  context: ServiceContext,
  input: z.output<typeof storeJobListInput>,
): Promise<z.infer<typeof storeJobPage>> {
  const { db, actor } = context
  const order = listOrder(storeJobSort, input)
  const rows = await db.storeJob.findMany({
    where: {
      organizationId: actor.organizationId,
      ...(input.vdiskId ? { vdiskId: input.vdiskId } : {}),
      ...(input.edgeId ? { edgeId: input.edgeId } : {}),
      ...(input.state ? { state: input.state === 'active' ? activeStates : input.state } : {}),
      AND: [visibleStoreJobs(actor), order.where],
    },
    orderBy: order.orderBy,
    take: order.take,
    select: jobSelect,
  })
  const names = await readNames(context, rows)
  return order.page(rows, (row) => jobViewOf(row, names))
}

/** Throws `not_found`. */
export async function getStoreJob(context: ServiceContext, jobId: string): Promise<StoreJobView> {
  const { db, actor } = context
  const row = await db.storeJob.findUnique({ where: ownRow(actor, jobId), select: jobSelect })
  if (!row) throw new AppError('not_found')
  return jobViewOf(row, await readNames(context, [row]))
}

interface JobNames {
  vdisks: Map<string, { id: string; name: string }>
  versions: Map<string, { id: string; number: number }>
  devices: Map<string, { id: string; name: string }>
}

/** Only devices that the caller may see. */
async function readNames({ db, actor }: ServiceContext, rows: JobRow[]): Promise<JobNames> {
  const { organizationId } = actor
  const vdiskIds = rows.flatMap(({ vdiskId }) => vdiskId ?? [])
  const versionIds = rows.flatMap(({ versionId, intoVersionId, message }) =>
    [versionId ?? [], intoVersionId ?? [], idsIn(message)].flat(),
  )
  const vdisks = await db.vdisk.findMany({
    where: { organizationId, id: { in: vdiskIds } },
    select: { id: true, name: true },
  })
  const versions = await db.vdiskVersion.findMany({
    where: { organizationId, id: { in: versionIds } },
    select: { id: true, number: true },
  })
  const devices = await db.device.findMany({
    where: {
      organizationId,
      id: { in: rows.flatMap(({ deviceId }) => deviceId ?? []) },
      AND: [visibleDevices(actor)],
    },
    select: { id: true, name: true },
  })
  const byId = <Row extends { id: string }>(all: Row[]) => new Map(all.map((row) => [row.id, row]))
  return { vdisks: byId(vdisks), versions: byId(versions), devices: byId(devices) }
}

const versionIdPattern = /(?<=\bversion )[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g

function idsIn(message: string | null): string[] {
  return message?.match(versionIdPattern) ?? []
}

/** Edges know versions by their ids, people by their numbers. */
function withNumbers(message: string | null, { versions }: JobNames): string | null {
  return message?.replace(versionIdPattern, (id) => String(versions.get(id)?.number ?? id)) ?? null
}

function jobViewOf(row: JobRow, names: JobNames): StoreJobView {
  const { vdisks, versions, devices } = names
  const { id, kind, state, sourcePath, sourceUrl, edge, message } = row
  return {
    id,
    kind,
    state,
    sourcePath,
    sourceUrl: sourceUrl && shownUrl(sourceUrl),
    format: row.exportFormat,
    edge: { id: edge.id, name: edge.name, siteId: edge.site.id, siteName: edge.site.name },
    vdisk: vdisks.get(row.vdiskId ?? '') ?? null,
    version: versions.get(row.versionId ?? '') ?? null,
    intoVersion: versions.get(row.intoVersionId ?? '') ?? null,
    device: devices.get(row.deviceId ?? '') ?? null,
    progressBytes: Number(row.progressBytes),
    totalBytes: Number(row.totalBytes),
    untrusted: { message: withNumbers(message, names) },
    askedBy: row.askedByName,
    askedAt: row.askedAt.toISOString(),
    startedAt: row.startedAt?.toISOString() ?? null,
    endedAt: row.endedAt?.toISOString() ?? null,
  }
}
