import type { z } from 'zod'
import { visibleDevicesSql } from '../access/visible.ts'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { versionFor } from '../rules/device/version-access.ts'
import { readResolved } from '../vdisk/public.ts'
import { predictStorm, type Range, type StormPrediction, type StormQuestion } from './model/predict-storm.ts'
import { bootsMin, type SiteModel, siteModelOf } from './model/site-model.ts'
import { bytesPerUsOf, readEdges, type SiteEdge } from './read-edges.ts'
import { readRecordedBoots } from './read-recorded-boots.ts'
import { runInTurns } from './run-in-turns.ts'
import { type PredictionOfVersion, type PredictionView, predictedDevicesMax, type predictionInput } from './schema.ts'

type Input = z.output<typeof predictionInput>
interface NumberedVersion {
  id: string
  number: number
}
interface Asked {
  devices: number
  input: Input
  edges: (SiteEdge & { linkMbps: number })[]
  edgeCount: number
}

/**
 * Predicts boots that were never made, of a version and of the one that production devices boot. Throws `not_found`
 * for a version that no device of the site can boot.
 */
export async function runPrediction(context: ServiceContext, input: Input): Promise<PredictionView> {
  const { site, vdiskId, version, current } = await readVersions(context, input)
  const all = await readEdges(context, input.siteId)
  const edges = all.flatMap((edge) => {
    const linkMbps = input.linkMbps ?? edge.linkMbps
    return linkMbps === null ? [] : [{ ...edge, linkMbps }]
  })
  const devices = input.devices ?? (await countDevices(context, { siteId: input.siteId, vdiskId }))
  const boots = await readRecordedBoots(context, {
    siteId: input.siteId,
    vdiskId,
    versionIds: [version, ...(current ? [current] : [])].map(({ id }) => id),
    // A link of unknown speed is taken to be as fast as the request says.
    links: new Map(edges.map(({ id, linkMbps }) => [id, bytesPerUsOf(reportedLink(all, id) ?? linkMbps)])),
  })
  const model = await runInTurns(siteModelOf(boots))
  const asked = { devices, input, edges, edgeCount: all.length }
  return {
    siteId: input.siteId,
    siteName: site.name,
    devices,
    startsPerSecond: input.startsPerSecond ?? null,
    reads: input.reads,
    edges: edges.length,
    linkMbps: edges.length > 0 ? Math.min(...edges.map(({ linkMbps }) => linkMbps)) : null,
    isLinkGiven: input.linkMbps !== undefined,
    stormBoots: model.stormBoots,
    isProcessorKnown: edges.length > 0 && edges.every(({ processorBytesPerUs }) => processorBytesPerUs !== null),
    version: await predictVersion(model, version, asked),
    current: current ? await predictVersion(model, current, asked) : null,
  }
}

const reportedLink = (edges: SiteEdge[], id: string) => edges.find((edge) => edge.id === id)?.linkMbps ?? null

async function readVersions({ db, actor, clock }: ServiceContext, { siteId, versionId }: Input) {
  const { organizationId } = actor
  const [site, version] = await Promise.all([
    db.site.findUnique({ where: ownRow(actor, siteId), select: { name: true, farmId: true } }),
    db.vdiskVersion.findFirst({
      where: { organizationId, id: versionId },
      select: { id: true, number: true, vdiskId: true, vdisk: { select: { farmId: true } } },
    }),
  ])
  if (!site || !version || version.vdisk.farmId !== site.farmId) throw new AppError('not_found')
  const { vdiskId } = version
  const resolved = (await readResolved(db, { organizationId, vdiskIds: [vdiskId] }, clock())).get(vdiskId)
  const production = resolved ? versionFor(resolved, { id: '', deviceType: 'production' }) : null
  const current = production && production.id !== version.id ? production : null
  return { site, vdiskId, version, current: current && { id: current.id, number: current.number } }
}

/** Devices of the site that boot the vDisk, and that the actor sees. */
async function countDevices(
  { db, actor }: ServiceContext,
  { siteId, vdiskId }: { siteId: string; vdiskId: string },
): Promise<number> {
  const [row] = await db.$queryRaw<{ count: number }[]>`
    select count(*)::integer as count from device join collection
      on collection.organization_id = device.organization_id and collection.id = device.collection_id
    where device.organization_id = ${actor.organizationId}::uuid and device.site_id = ${siteId}::uuid
      and coalesce(device.vdisk_id, collection.vdisk_id) = ${vdiskId}::uuid and ${visibleDevicesSql(actor)}`
  return Math.min(predictedDevicesMax, row?.count ?? 0)
}

async function predictVersion(
  model: SiteModel,
  { id, number }: NumberedVersion,
  asked: Asked,
): Promise<PredictionOfVersion> {
  const known = { versionId: id, number, bootCount: model.quietBoots.get(id) ?? 0 }
  const unknownBecause = reasonAgainst(model, id, asked)
  if (unknownBecause) return { ...known, unknownBecause, storm: null }
  const { devices, input, edges } = asked
  const question: StormQuestion = {
    versionId: id,
    devices,
    startsPerSecond: input.startsPerSecond ?? null,
    isCold: input.reads === 'cold',
    edges: edges.map(({ linkMbps, processorBytesPerUs }) => ({
      linkBytesPerUs: bytesPerUsOf(linkMbps),
      processorBytesPerUs,
    })),
    deviceBytesPerUs: null,
  }
  return { ...known, unknownBecause: null, storm: stormView(await runInTurns(predictStorm(model, question))) }
}

function reasonAgainst(
  model: SiteModel,
  versionId: string,
  { devices, input, edges, edgeCount }: Asked,
): PredictionOfVersion['unknownBecause'] {
  if (edgeCount === 0) return 'no_edge'
  if (edges.length === 0) return 'link_unknown'
  if (devices === 0) return 'no_devices'
  if ((model.quietBoots.get(versionId) ?? 0) < bootsMin) return 'few_boots'
  if ((model.alone.get(versionId)?.length ?? 0) < bootsMin) return 'few_warm_boots'
  if (input.reads === 'cold' && !model.coldUsPerByte.has(versionId)) return 'no_cold_boots'
  return null
}

function stormView({ p50Us, p95Us, lastUs, linkShare, bytes, limitedBy, parts }: StormPrediction) {
  return {
    p50Us: whole(p50Us),
    p95Us: whole(p95Us),
    lastUs: whole(lastUs),
    linkShare: Math.min(1, linkShare),
    bytes: Math.round(bytes),
    limitedBy,
    parts: {
      aloneUs: Math.round(parts.aloneUs),
      sharedUs: Math.round(parts.sharedUs),
      storageUs: Math.round(parts.storageUs),
    },
  }
}

const whole = ({ value, low, high }: Range): Range => ({
  value: Math.round(value),
  low: Math.round(low),
  high: Math.round(high),
})
