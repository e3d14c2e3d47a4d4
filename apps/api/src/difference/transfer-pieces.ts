import { hash } from 'node:crypto'
import { differenceSizeMax } from '@bootfarm/proto/uplink'
import {
  type AuthenticatedEdge,
  type DbOrTransaction,
  lockOrganization,
  ownRow,
  type SystemContext,
} from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { activeStates } from '../store/public.ts'
import type { ListedDifference, Objects } from './objects.ts'

type Edge = Pick<AuthenticatedEdge, 'organizationId' | 'edgeId'>

/** One transaction in the edge's organization: pieces are read and written outside of any. */
export type Within = <T>(work: (tenant: SystemContext) => Promise<T>) => Promise<T>

interface Transfer {
  edge: Edge
  differenceId: string
  objects: Objects
  within: Within
}

/**
 * Takes the list of pieces of a difference that the edge packs. Throws `not_found` unless a job of the edge sends it;
 * `quota_exceeded` if the organization's differences would have too many bytes.
 */
export async function takeList(
  { edge, differenceId, objects, within }: Transfer,
  { list, sizeBytes }: { list: Uint8Array; sizeBytes: number },
): Promise<void> {
  if (sizeBytes > differenceSizeMax)
    throw new AppError('too_large', { public: `A difference can have at most ${differenceSizeMax} bytes.` })
  const { organizationId } = edge
  const key = { organizationId, differenceId }
  const listSha256 = hash('sha256', list, 'hex')
  const before = await within(({ db }) => readPacked(db, { edge, differenceId }))
  if (before.listSha256 !== null && before.listSha256 !== listSha256) await objects.drop(key)
  await within(async ({ db }) => {
    await requireQuota(db, { ...key, sizeBytes, objects })
    await db.difference.updateMany({
      where: { organizationId, id: differenceId },
      data: { sizeBytes, listSha256, ...(before.listSha256 === listSha256 ? {} : { storedAt: null }) },
    })
  })
  await objects.putList(key, { list, sizeBytes })
}

async function requireQuota(
  db: DbOrTransaction,
  {
    organizationId,
    differenceId,
    sizeBytes,
    objects,
  }: { organizationId: string; differenceId: string; sizeBytes: number; objects: Objects },
): Promise<void> {
  // Two at once do not pass the limit together.
  await lockOrganization(db, organizationId, 'no key update')
  const { _sum } = await db.difference.aggregate({
    where: { organizationId, id: { not: differenceId } },
    _sum: { sizeBytes: true },
  })
  const max = objects.settings.organizationBytesMax
  if (Number(_sum.sizeBytes ?? 0n) + sizeBytes <= max) return
  throw new AppError('quota_exceeded', {
    public: `The differences of this organization can have at most ${max} bytes together in the control plane. They are removed a week after the last edge has fetched them.`,
  })
}

/** Returns the pieces that the edge has yet to send; none: the store has all of them, which is recorded. */
export async function missingPieces({ edge, differenceId, objects, within }: Transfer): Promise<number[]> {
  const difference = await within(({ db }) => readSent(db, { edge, differenceId }))
  const missing = await objects.missing(difference)
  if (missing.length === 0)
    await within(({ db, clock }) =>
      db.difference.updateMany({
        where: { organizationId: edge.organizationId, id: differenceId, listSha256: difference.listSha256 },
        data: { storedAt: clock() },
      }),
    )
  return missing
}

/** Throws as `Objects.putPiece`; `not_found` unless a job of the edge sends the difference. */
export async function takePiece(
  { edge, differenceId, objects, within }: Transfer,
  piece: { index: number; bytes: Uint8Array },
): Promise<void> {
  await objects.putPiece(await within(({ db }) => readSent(db, { edge, differenceId })), piece)
}

/** Throws `not_found` unless a job of the edge fetches the difference from the control plane. */
export async function giveList(transfer: Transfer): Promise<Uint8Array> {
  return given(transfer, (difference) => transfer.objects.list(difference))
}

export async function givePiece(transfer: Transfer, index: number): Promise<Uint8Array> {
  return given(transfer, (difference) => transfer.objects.piece(difference, index))
}

/** An object store that has lost the object gets the difference again: its row says that it is not stored. */
async function given(
  { edge, differenceId, within }: Transfer,
  read: (difference: ListedDifference) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const { organizationId } = edge
  const difference = await within(({ db }) => readFetched(db, { edge, differenceId }))
  try {
    return await read(difference)
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found')
      await within(({ db }) =>
        db.difference.updateMany({ where: { organizationId, id: differenceId }, data: { storedAt: null } }),
      )
    throw error
  }
}

interface Wanted {
  edge: Edge
  differenceId: string
}

/** The difference that a job of the edge packs and sends; its list may not be known yet. */
async function readPacked(db: DbOrTransaction, { edge, differenceId }: Wanted) {
  const { organizationId, edgeId } = edge
  const job = await db.storeJob.findFirst({
    where: { organizationId, edgeId, differenceId, kind: 'pack', toControlPlane: true, state: activeStates },
    select: { id: true },
  })
  const row = job ? await readRow(db, { organizationId, differenceId }) : null
  if (!row) throw new AppError('not_found', { public: 'No job of this edge sends this difference.' })
  return row
}

async function readSent(db: DbOrTransaction, wanted: Wanted): Promise<ListedDifference> {
  const { sizeBytes, listSha256 } = await readPacked(db, wanted)
  if (sizeBytes === null || listSha256 === null)
    throw new AppError('not_found', { public: 'Send the list of pieces first.' })
  const { edge, differenceId } = wanted
  return { organizationId: edge.organizationId, differenceId, sizeBytes: Number(sizeBytes), listSha256 }
}

async function readFetched(db: DbOrTransaction, { edge, differenceId }: Wanted): Promise<ListedDifference> {
  const { organizationId, edgeId } = edge
  const job = await db.storeJob.findFirst({
    where: { organizationId, edgeId, differenceId, kind: 'fetch', fromControlPlane: true, state: activeStates },
    select: { id: true },
  })
  const row = job ? await readRow(db, { organizationId, differenceId }) : null
  if (!row?.listSha256 || row.sizeBytes === null)
    throw new AppError('not_found', { public: 'No job of this edge fetches this difference from here.' })
  return { organizationId, differenceId, sizeBytes: Number(row.sizeBytes), listSha256: row.listSha256 }
}

function readRow(
  db: DbOrTransaction,
  { organizationId, differenceId }: { organizationId: string; differenceId: string },
) {
  return db.difference.findUnique({
    where: ownRow({ organizationId }, differenceId),
    select: { sizeBytes: true, listSha256: true, storedAt: true },
  })
}
