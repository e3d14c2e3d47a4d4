import { visibleBoots } from '../access/visible.ts'
import { findBoots, readBootDays } from '../boot/public.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { onlineEdgeFilter } from '../edge/public.ts'
import type { StormBoot } from './read-storm-rows.ts'
import type { Storm, StormKind } from './schema.ts'

/** A median of fewer boots says little. */
const readyCountMin = 5
/** Kinds whose history is read: a storm has few, and each costs a page of an index for each day. */
const kindsReadMax = 10
const historyDaysMax = 8
const historyBootsMax = 50
const edgesMax = 50
const rateWindowMs = 60_000

type Timed = Pick<StormBoot, 'totalUs' | 'phases'>

interface Kind {
  vdiskId: string
  versionId: string | null
  ready: Timed[]
}

/** What the boots read, and how long the ready ones of each kind took. */
export async function readStormKinds(
  context: ServiceContext,
  boots: StormBoot[],
): Promise<{ kinds: StormKind[]; kindIndexOf: (boot: StormBoot) => number }> {
  const found = new Map<string, Kind>()
  for (const boot of boots) {
    const key = keyOf(boot)
    if (key === null || boot.vdiskId === null) continue
    const kind = found.get(key) ?? { vdiskId: boot.vdiskId, versionId: boot.versionId, ready: [] }
    if (boot.outcome === 'ready') kind.ready.push(boot)
    found.set(key, kind)
  }
  const all = [...found.values()]
  const names = await readNames(context, all)
  const few = all.filter(({ ready }) => ready.length < readyCountMin).slice(0, kindsReadMax)
  const history = await readHistory(context, few)
  const keys = [...found.keys()]
  const indexes = new Map(keys.map((key, index) => [key, index]))
  return {
    kinds: all.map((kind) => kindOf(names(kind), kind.ready, history.get(kind))),
    kindIndexOf: (boot) => indexes.get(keyOf(boot) ?? '') ?? -1,
  }
}

function keyOf({ vdiskId, versionId }: Pick<StormBoot, 'vdiskId' | 'versionId'>): string | null {
  return vdiskId === null ? null : `${vdiskId} ${versionId}`
}

function kindOf(name: string, ready: Timed[], before: Timed[] | undefined): StormKind {
  const basis = ready.length >= readyCountMin ? 'storm' : (before?.length ?? 0) >= readyCountMin ? 'history' : null
  const timed = basis === 'storm' ? ready : basis === 'history' ? (before ?? []) : []
  const lengths = new Map<string, number[]>()
  for (const { phases } of timed)
    for (const { name: phase, durationUs } of phases)
      if (typeof durationUs === 'number') {
        const known = lengths.get(phase)
        if (known) known.push(durationUs)
        else lengths.set(phase, [durationUs])
      }
  return {
    name,
    basis,
    readyCount: timed.length,
    p50Ms: timed.length > 0 ? usToMs(medianOf(timed.map(({ totalUs }) => Number(totalUs)))) : null,
    phaseP50Ms: Object.fromEntries([...lengths].map(([phase, values]) => [phase, usToMs(medianOf(values))])),
  }
}

function usToMs(us: number): number {
  return Math.round(us / 1000)
}

function medianOf(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0
}

/** The last ready boots that the actor may see. */
async function readHistory(context: ServiceContext, kinds: Kind[]): Promise<Map<Kind, Timed[]>> {
  if (kinds.length === 0) return new Map()
  const [visible, days] = await Promise.all([visibleBoots(context), readBootDays(context)])
  const options = {
    days: days.slice(0, historyDaysMax).map(({ receivedOn }) => receivedOn),
    oldestFirst: false,
    limit: historyBootsMax,
  }
  const read = async (kind: Kind): Promise<[Kind, Timed[]]> => {
    const { vdiskId, versionId } = kind
    const where = { AND: [visible, { vdiskId, versionId, outcome: 'ready' as const, generated: false }] }
    const rows = await findBoots(context, { ...options, where })
    // Only `writeBoots` writes the phases, from a report that zod validated.
    return [kind, rows.map(({ totalUs, phases }) => ({ totalUs, phases: phases as unknown as Timed['phases'] }))]
  }
  return new Map(await Promise.all(kinds.map(read)))
}

/** Edges name vDisk and version; whether they are of this organization is looked up, not believed. */
async function readNames({ db, actor }: ServiceContext, kinds: Kind[]): Promise<(kind: Kind) => string> {
  const { organizationId } = actor
  const [vdisks, versions] = await Promise.all([
    db.vdisk.findMany({
      where: { organizationId, id: { in: kinds.map(({ vdiskId }) => vdiskId) } },
      select: { id: true, name: true },
    }),
    db.vdiskVersion.findMany({
      where: { organizationId, id: { in: kinds.flatMap(({ versionId }) => versionId ?? []) } },
      select: { id: true, number: true },
    }),
  ])
  const nameOf = new Map(vdisks.map(({ id, name }) => [id, name]))
  const numberOf = new Map(versions.map(({ id, number }) => [id, number]))
  return ({ vdiskId, versionId }) => {
    const number = numberOf.get(versionId ?? '')
    const name = nameOf.get(vdiskId) ?? '(removed)'
    return number === undefined ? name : `${name}, version ${number}`
  }
}

/** The edges of the boots, the busiest first. */
export async function readStormEdges(
  { db, actor }: ServiceContext,
  boots: StormBoot[],
  now: Date,
): Promise<Storm['edges']> {
  const { organizationId } = actor
  const figures = new Map<string, { bootingCount: number; bytes: number }>()
  for (const boot of boots) {
    const figure = figures.get(boot.edgeId) ?? { bootingCount: 0, bytes: 0 }
    if (boot.outcome === null) figure.bootingCount += 1
    figure.bytes += bytesWithin(boot, now)
    figures.set(boot.edgeId, figure)
  }
  const of = { organizationId, id: { in: [...figures.keys()] } }
  const [edges, online] = await Promise.all([
    db.edge.findMany({ where: of, select: { id: true, name: true, site: { select: { name: true } } } }),
    db.edge.findMany({ where: { ...of, ...onlineEdgeFilter(now) }, select: { id: true } }),
  ])
  const onlineIds = new Set(online.map(({ id }) => id))
  return edges
    .map(({ id, name, site }) => {
      const { bootingCount = 0, bytes = 0 } = figures.get(id) ?? {}
      const bytesPerSecond = Math.round(bytes / (rateWindowMs / 1000))
      return { id, name, siteName: site.name, online: onlineIds.has(id), bootingCount, bytesPerSecond }
    })
    .sort((a, b) => b.bootingCount - a.bootingCount || b.bytesPerSecond - a.bytesPerSecond || (a.id < b.id ? -1 : 1))
    .slice(0, edgesMax)
}

/** The part of a boot's bytes that falls into the last minute, if they were sent evenly from its start to its end. */
function bytesWithin({ startedAt, updatedAt, outcome, totalUs, bytesOut }: StormBoot, now: Date): number {
  const start = startedAt.getTime()
  const known = start + Number(totalUs) / 1000
  const end = Math.min(now.getTime(), outcome === null ? Math.max(known, updatedAt.getTime()) : known)
  const within = end - Math.max(start, now.getTime() - rateWindowMs)
  return within <= 0 || end <= start ? 0 : (Number(bytesOut) * within) / (end - start)
}
