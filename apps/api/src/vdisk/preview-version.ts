import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { type Users, usersText } from '../context/in-use.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { lackingEdges } from '../placement/public.ts'
import { type ResolvedVersions, resolveVersions } from '../rules/device/version-access.ts'
import { onlyVisible, protectedText, unfinishedJob, versionHolders } from './remove-version.ts'
import { seesEdgesOf, sumOf, type Tally, tallyDevices, versionOfGroup } from './tally-devices.ts'
import { readAtEdges, versionDetailSelect } from './version-detail.ts'
import { versionChoicesSelect } from './version-facts.ts'
import type { previewInput, VersionPreview } from './version-schema.ts'
import { apply } from './version-steps.ts'
import { readPromotion } from './waiting-promotion.ts'

const childrenShownMax = 100
const lackingShownMax = 100
/** Steps that choose the default. */
const choosing = new Set(['promote', 'revert'])
/** Steps after which devices boot the version. */
const releasing = new Set(['promote', 'revert', 'override'])
const select = {
  ...versionChoicesSelect,
  versions: { orderBy: { number: 'desc' }, select: { ...versionDetailSelect, vdiskId: true } },
} satisfies Prisma.VdiskSelect
type VdiskRow = Prisma.VdiskGetPayload<{ select: typeof select }>
type VersionRow = VdiskRow['versions'][number]

/** Previews the result, without a change. Throws `not_found`. */
export async function previewVersion(
  context: ServiceContext,
  { versionId, action }: z.output<typeof previewInput>,
): Promise<VersionPreview> {
  const { db, clock, actor } = context
  const found = await db.vdiskVersion.findUnique({
    where: ownRow(actor, versionId),
    select: { vdiskId: true, vdisk: { select: { farmId: true } } },
  })
  if (!found) throw new AppError('not_found')
  const { vdiskId } = found
  const { farmId } = found.vdisk
  const seesEdge = seesEdgesOf(actor, farmId)
  const where = ownRow(actor, vdiskId)
  const vdisk = await db.vdisk.findUniqueOrThrow({ where, select })
  const version = vdisk.versions.find(({ id }) => id === versionId)
  if (!version) throw new AppError('not_found')
  const now = clock()
  const before = resolveVersions(vdisk, vdisk.versions, now)
  const { next = vdisk, refusal } = apply(vdisk, { kind: action, versionId }, now)
  const after = resolveVersions(next, next.versions, now)
  const rowOf = (one: { id: string } | null) => vdisk.versions.find(({ id }) => id === one?.id) ?? null
  const tallies = await tallyDevices(db, { vdiskId, actor }, before)
  const atEdges = await readAtEdges(db, { organizationId: actor.organizationId, versionIds: [versionId] })
  const lacking = releasing.has(action) ? await lackingOf(context, { vdiskId, versionId, farmId }) : []
  const numberOf = new Map(vdisk.versions.map(({ id, number }) => [id, number]))
  const seen = { ...onlyVisible(actor), running: tallies.runningOf(versionId) }
  const holders = holdersText(action, await versionHolders(context, versionId, seen))
  return {
    action,
    refusals: refusalsOf(action, { version, holders, refusal: refusal?.text ?? null }),
    before: before.production && { versionId: before.production.id, number: before.production.number },
    after: after.production && { versionId: after.production.id, number: after.production.number },
    changed: changesOf(tallies.groups, before, after),
    running: [...tallies.running].map(([id, devices]) => ({
      versionId: id,
      number: numberOf.get(id) ?? null,
      devices,
    })),
    changesBoot: bootOf(rowOf(before.production)) !== bootOf(rowOf(after.production)),
    holders,
    childNumbers: vdisk.versions
      .filter(({ parentVersionId }) => parentVersionId === versionId)
      .slice(0, childrenShownMax)
      .map(({ number }) => number),
    edges: (atEdges.get(versionId) ?? [])
      .filter(({ state, siteId }) => state !== 'missing' && seesEdge(siteId))
      .map(({ edgeId, edgeName, siteName, ownBytes, sharedBytes, reclaimableBytes }) => ({
        edgeId,
        edgeName,
        siteName,
        ownBytes: Number(ownBytes),
        sharedBytes: Number(sharedBytes),
        reclaimableBytes: Number(reclaimableBytes),
      })),
    cancelsPromotionOf: choosing.has(action) ? await overtakenBy(context, vdiskId, versionId) : null,
    lacking,
  }
}

/** Jobs refuse a deletion, and no other step. */
function holdersText(action: VersionPreview['action'], users: Users[]): string[] {
  const told = action === 'delete' ? users : users.filter(({ noun }) => noun !== unfinishedJob)
  return told.map(usersText).filter((text) => text !== null)
}

/** Number of another version that waits. */
async function overtakenBy({ db, actor }: ServiceContext, vdiskId: string, versionId: string): Promise<number | null> {
  const row = await readPromotion(db, { organizationId: actor.organizationId, vdiskId })
  return row && row.givenUpAt === null && row.versionId !== versionId ? row.version.number : null
}

/** Why the step would be refused. What needs a version counts for its deletion alone. */
function refusalsOf(
  action: VersionPreview['action'],
  { version, holders, refusal }: { version: VersionRow; holders: string[]; refusal: string | null },
): string[] {
  const needs = action === 'delete' ? holders : []
  const kept = action === 'delete' && version.isProtected ? [protectedText(version.number), ...needs] : needs
  return kept.length > 0 || refusal === null ? kept : [refusal]
}

/** Those that the caller may see. */
async function lackingOf(
  { db, clock, actor }: ServiceContext,
  { farmId, ...version }: { farmId: string; vdiskId: string; versionId: string },
): Promise<VersionPreview['lacking']> {
  const seesEdge = seesEdgesOf(actor, farmId)
  const { organizationId } = actor
  const edges = await lackingEdges(db, { organizationId, ...version, now: clock() })
  return edges
    .filter(({ siteId }) => seesEdge(siteId))
    .slice(0, lackingShownMax)
    .map(({ edgeId, edgeName, siteName, state, progressBytes, totalBytes }) => ({
      edgeId,
      edgeName,
      siteName,
      state,
      progressBytes,
      totalBytes,
    }))
}

function changesOf(
  groups: Parameters<typeof sumOf>[0],
  before: ResolvedVersions,
  after: ResolvedVersions,
): VersionPreview['changed'] {
  const moves = new Map<string, { from: number | null; to: number | null; groups: typeof groups }>()
  for (const group of groups) {
    const [from, to] = [versionOfGroup(before, group), versionOfGroup(after, group)]
    if (from?.id === to?.id) continue
    const key = `${from?.id} ${to?.id}`
    const move = moves.get(key) ?? { from: from?.number ?? null, to: to?.number ?? null, groups: [] }
    moves.set(key, { ...move, groups: [...move.groups, group] })
  }
  return [...moves.values()].map(({ from, to, groups: moved }) => ({
    fromNumber: from,
    toNumber: to,
    devices: sumOf(moved) satisfies Tally,
  }))
}

function bootOf(version: VersionRow | null): string {
  if (!version) return ''
  const { kernelPath, initrdPath, kernelSha256, initrdSha256, commandLine } = version
  return JSON.stringify([kernelPath, initrdPath, kernelSha256, initrdSha256, commandLine])
}
