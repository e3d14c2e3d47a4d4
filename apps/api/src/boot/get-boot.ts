import type { GuestReport } from '@bootfarm/proto/uplink'
import { ownRow, type SystemContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Actor } from '../rules/actor.ts'
import { type BootRow, findBoot } from './read-boots.ts'
import { type BootDetailParts, bootDetailOf } from './rows.ts'
import type { BootDetail } from './schema.ts'

type ReadContext = SystemContext & { actor: Pick<Actor, 'organizationId'> }

/** Throws `not_found`. */
export async function getBoot(
  context: ReadContext,
  { bootId, detailKeptDays }: { bootId: string; detailKeptDays: number },
): Promise<BootDetail> {
  const { db, clock, actor } = context
  const row = await findBoot(context, bootId)
  if (!row) throw new AppError('not_found')
  const [capture, detail, vdisk, experiment] = await Promise.all([
    db.bootCapture.findUnique({
      where: { organizationId_bootId: { organizationId: actor.organizationId, bootId } },
      select: { receivedAt: true, packetCount: true, sizeBytes: true },
    }),
    readDetail(context, row),
    vdiskOf(context, row),
    experimentOf(context, bootId),
  ])
  const handOver = await handOverOf(context, row, detail)
  return bootDetailOf(row, { detail, detailKeptDays, capture, vdisk, experiment, handOver, now: clock() })
}

async function experimentOf({ db, actor }: ReadContext, bootId: string): Promise<BootDetail['experiment']> {
  const trial = await db.experimentTrial.findFirst({
    where: { organizationId: actor.organizationId, bootId },
    select: { settings: true, experiment: { select: { id: true, name: true } } },
  })
  return trial && { ...trial.experiment, settings: trial.settings }
}

/** Null once its day is past the details' retention. */
async function readDetail({ db, actor }: ReadContext, { id, receivedOn }: BootRow) {
  const { organizationId } = actor
  const detail = await db.bootDetail.findUnique({
    where: { organizationId_bootId_receivedOn: { organizationId, bootId: id, receivedOn } },
    select: { phases: true, facts: true, guest: true },
  })
  // Only `writeBoots` writes these, from a report that zod validated.
  return detail as unknown as BootDetailParts | null
}

/** The device's own report; null if there is none, or it is past its retention. */
export async function readGuest(context: ReadContext, row: BootRow): Promise<GuestReport | null> {
  const detail = await readDetail(context, row)
  return detail?.guest ?? null
}

/** Null also if the edge no longer belongs to this organization. */
async function handOverOf(
  { db, actor }: ReadContext,
  { startedAt }: BootRow,
  detail: BootDetailParts | null,
): Promise<BootDetail['handOver']> {
  const said = detail?.facts?.handOver
  if (!said) return null
  const edges = await db.edge.findMany({
    where: { organizationId: actor.organizationId, id: { in: [said.edgeId, said.fromEdgeId] } },
    select: { id: true, name: true },
  })
  const nameOf = (edgeId: string) => edges.find(({ id }) => id === edgeId)?.name ?? null
  const edgeName = nameOf(said.edgeId)
  if (edgeName === null) return null
  const at = new Date(startedAt.getTime() + said.atUs / 1000).toISOString()
  return {
    edgeId: said.edgeId,
    edgeName,
    at,
    atUs: said.atUs,
    fromEdgeName: nameOf(said.fromEdgeId),
    count: said.number,
  }
}

/** The edge names vDisk and version; whether they are of this organization is looked up, not believed. */
async function vdiskOf({ db, actor }: ReadContext, row: BootRow): Promise<BootDetail['vdisk']> {
  if (!row.vdiskId) return null
  const { organizationId } = actor
  const [vdisk, version] = await Promise.all([
    db.vdisk.findUnique({ where: ownRow(actor, row.vdiskId), select: { id: true, name: true } }),
    row.versionId &&
      db.vdiskVersion.findFirst({
        where: { organizationId, id: row.versionId, vdiskId: row.vdiskId },
        select: { number: true },
      }),
  ])
  return vdisk && { ...vdisk, versionNumber: version ? version.number : null }
}
