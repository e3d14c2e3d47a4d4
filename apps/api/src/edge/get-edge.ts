import type { Heartbeat } from '@bootfarm/proto/uplink'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { withOtherMtus } from './edge-interfaces.ts'
import { edgeSummaryOf, edgeSummarySelect, heartbeatOf } from './rows.ts'
import type { EdgeDetail } from './schema.ts'

const gapsShown = 20

const detailSelect = {
  ...edgeSummarySelect,
  bootEpoch: true,
  publicKey: true,
  rotateKeyFrom: true,
  keyRotatedAt: true,
  wantedRelease: true,
  releaseAttempt: true,
  refusedCode: true,
  refusedVersion: true,
  refusedAt: true,
  clockOffsetMs: true,
  desiredState: { select: { incarnation: true, counter: true } },
} as const

/** Throws `not_found`. */
export async function getEdge({ db, clock, actor }: ServiceContext, edgeId: string): Promise<EdgeDetail> {
  const { organizationId } = actor
  const row = await db.edge.findUnique({
    where: ownRow(actor, edgeId),
    select: detailSelect,
  })
  if (!row) throw new AppError('not_found')
  const lost = await db.reportCursor.aggregate({
    where: { organizationId, edgeId },
    _sum: { lostCount: true },
  })
  const heartbeat = heartbeatOf(row)
  const siteEdges = await db.edge.findMany({
    where: { organizationId, siteId: row.siteId },
    select: { id: true, name: true, revokedAt: true, heartbeat: true },
  })
  const nameOf = new Map(siteEdges.map(({ id, name }) => [id, name]))
  return {
    ...edgeSummaryOf(row, clock()),
    bootEpoch: Number(row.bootEpoch),
    uptimeMs: heartbeat?.uptimeMs ?? null,
    clockOffsetMs: row.clockOffsetMs === null ? null : Number(row.clockOffsetMs),
    ignored: Object.entries(heartbeat?.ignored ?? {})
      .map(([reason, count]) => ({ reason, count }))
      .sort((left, right) => right.count - left.count || left.reason.localeCompare(right.reason)),
    desiredState: row.desiredState
      ? { incarnation: row.desiredState.incarnation, counter: Number(row.desiredState.counter) }
      : null,
    appliedState: heartbeat?.state ?? null,
    reportsLost: Number(lost._sum.lostCount ?? 0n),
    reportGaps: await readGaps(db, { organizationId, edgeId }),
    address: heartbeat?.address ?? null,
    interfaces: withOtherMtus(
      heartbeat?.interfaces ?? [],
      siteEdges
        .filter(({ id, revokedAt }) => id !== edgeId && revokedAt === null)
        .map((other) => ({ ...other, interfaces: heartbeatOf(other)?.interfaces ?? [] })),
    ),
    machine: heartbeat?.machine ?? null,
    keyRotatedAt: row.keyRotatedAt?.toISOString() ?? null,
    keyOrdered: row.rotateKeyFrom === row.publicKey,
    refused: refusalOf(row),
    stateRefused: heartbeat?.stateRefused ?? null,
    release: releaseOf(row, heartbeat),
    bootPrograms: heartbeat?.bootPrograms ?? [],
    storeErrors: await storeErrorsOf(db, organizationId, heartbeat?.storeErrors ?? []),
    peers: (heartbeat?.peers ?? []).map((peer) => ({ ...peer, edgeName: nameOf.get(peer.edgeId) ?? null })),
    cacheCopies: (heartbeat?.cacheCopies ?? []).map((copies) => copiesOf(copies, nameOf.get(copies.edgeId) ?? null)),
    copiedTo: siteEdges
      .filter(({ revokedAt }) => revokedAt === null)
      .flatMap((other) =>
        (heartbeatOf(other)?.cacheCopies ?? [])
          .filter((copies) => copies.edgeId === edgeId)
          .map((copies) => copiesOf({ ...copies, edgeId: other.id }, other.name)),
      ),
    siteEdgeCount: siteEdges.filter(({ revokedAt }) => revokedAt === null).length,
  }
}

function copiesOf(
  { edgeId, count, oldestUnixMs }: NonNullable<Heartbeat['cacheCopies']>[number],
  edgeName: string | null,
): EdgeDetail['cacheCopies'][number] {
  return { edgeId, edgeName, count, oldestAt: dateOf(oldestUnixMs) }
}

/** An edge's clock may be years ahead of what a date can be. */
function dateOf(unixMs: number): string {
  return new Date(Math.min(unixMs, maxDateMs)).toISOString()
}

/** What the edge has said about an earlier order is not said about this one. */
function releaseOf(
  { wantedRelease: version, releaseAttempt: attempt }: { wantedRelease: string | null; releaseAttempt: number },
  heartbeat: Heartbeat | null,
): EdgeDetail['release'] {
  if (version === null) return null
  const update = heartbeat?.update
  if (update?.version !== version || update.attempt !== attempt)
    return { version, attempt, state: 'ordered', cause: null }
  return { version, attempt, state: update.state, cause: update.cause ?? null }
}

async function storeErrorsOf(
  db: ServiceContext['db'],
  organizationId: string,
  errors: NonNullable<Heartbeat['storeErrors']>,
): Promise<EdgeDetail['storeErrors']> {
  if (errors.length === 0) return []
  const versions = await db.vdiskVersion.findMany({
    where: { organizationId, id: { in: errors.map(({ versionId }) => versionId) } },
    select: { id: true, number: true, vdisk: { select: { id: true, name: true } } },
  })
  const vdiskOf = new Map(versions.map(({ id, number, vdisk }) => [id, { id: vdisk.id, name: vdisk.name, number }]))
  return errors.map(({ versionId, offset, length, count, sinceUnixMs }) => ({
    versionId,
    vdisk: vdiskOf.get(versionId) ?? null,
    offset,
    length,
    count,
    since: dateOf(sinceUnixMs),
  }))
}

/** The year 9999: later ones have another form. */
const maxDateMs = 253_402_300_799_999

function refusalOf(row: {
  refusedCode: string | null
  refusedVersion: number | null
  refusedAt: Date | null
}): EdgeDetail['refused'] {
  if (!row.refusedAt || row.refusedVersion === null) return null
  const code = row.refusedCode === 'edge_too_new' ? 'edge_too_new' : 'edge_too_old'
  return { code, version: row.refusedVersion, at: row.refusedAt.toISOString() }
}

async function readGaps(
  db: ServiceContext['db'],
  where: { organizationId: string; edgeId: string },
): Promise<EdgeDetail['reportGaps']> {
  const gaps = await db.reportGap.findMany({
    where,
    orderBy: [{ declaredAt: 'desc' }, { bootEpoch: 'desc' }, { fromSeq: 'desc' }],
    take: gapsShown,
    select: { fromSeq: true, untilSeq: true, fromAt: true, untilAt: true, reason: true, declaredAt: true },
  })
  return gaps.map(({ fromSeq, untilSeq, fromAt, untilAt, reason, declaredAt }) => ({
    count: Number(untilSeq - fromSeq) + 1,
    fromAt: fromAt?.toISOString() ?? null,
    untilAt: untilAt?.toISOString() ?? null,
    reason,
    declaredAt: declaredAt.toISOString(),
  }))
}
