import { differenceSourcesMax, storeJobsMax } from '@bootfarm/proto/uplink'
import { byteText } from '../rules/byte-text.ts'
import { isOpen } from './placement-rule.ts'
import type {
  Cell,
  FactDifference,
  FactEdge,
  FactJob,
  FactSetback,
  FactSite,
  FactVersion,
  TransferFacts,
  TransferPlan,
  WaitReason,
} from './transfer-facts.ts'

/**
 * Decides which differences of a vDisk's versions are packed and fetched, and where. Pure, and idempotent: with its
 * result in the facts, it orders nothing again.
 */

/** An edge gets and packs so many at once; the rest of its line and disk is for devices. */
const transfersPerEdgeMax = 2
const pauseMs = { first: 60_000, max: 6 * 3_600_000, cancelled: 24 * 3_600_000 }

export function planTransfers(facts: TransferFacts): TransferPlan {
  return new Planning(facts).plan()
}

/** When a pair of edge and version is tried again after failures; doubling pauses. */
export function retryAt({ failures, isCancelled, lastAt }: FactSetback): Date {
  const pause = isCancelled ? pauseMs.cancelled : Math.min(pauseMs.max, pauseMs.first * 2 ** (failures - 1))
  return new Date(lastAt.getTime() + pause)
}

/** Besides the file of a difference and what is made from it. The edge itself refuses to fetch below it. */
const freeBytesMin = 256 * 1024 ** 2

const pairOf = (versionId: string, edgeId: string) => `${versionId} ${edgeId}`

class Planning {
  readonly #facts: TransferFacts
  readonly #edges: Map<string, FactEdge>
  readonly #sites: Map<string, FactSite>
  readonly #versions: Map<string, FactVersion>
  readonly #copies: Map<string, 'present' | 'damaged' | 'arrived'>
  readonly #setbacks: Map<string, FactSetback>
  /** By edge: what is free besides what this plan orders. */
  readonly #free: Map<string, number | null>
  /** By pair: how much space is missing, for people. */
  readonly #shortages = new Map<string, string>()
  readonly #chosen = new Map<string, Set<string>>()
  /** By edge: what is active, and what this plan adds. */
  readonly #transfers: Map<string, number>
  #turns: number
  readonly #plan: TransferPlan = { packs: [], fetches: [], cancelled: [], rates: [], lacking: new Set(), cells: [] }

  constructor(facts: TransferFacts) {
    this.#facts = facts
    this.#edges = new Map(facts.edges.map((edge) => [edge.id, edge]))
    this.#sites = new Map(facts.sites.map((site) => [site.id, site]))
    this.#versions = new Map(facts.versions.map((version) => [version.id, version]))
    this.#copies = new Map(facts.copies.map(({ versionId, edgeId, state }) => [pairOf(versionId, edgeId), state]))
    this.#setbacks = new Map(facts.setbacks.map((one) => [`${one.kind} ${pairOf(one.versionId, one.edgeId)}`, one]))
    this.#transfers = new Map(facts.edges.map(({ id, transfers }) => [id, transfers]))
    this.#free = new Map(facts.edges.map(({ id, freeBytes }) => [id, freeBytes]))
    this.#turns = facts.turns
  }

  plan(): TransferPlan {
    const { versions, edges, jobs } = this.#facts
    for (const version of versions) this.#chosen.set(version.id, this.#chooseEdges(version))
    for (const version of versions)
      for (const edge of edges)
        if (this.#isChosen(version.id, edge.id) && !this.#copies.has(pairOf(version.id, edge.id)))
          this.#plan.lacking.add(version.id)
    for (const job of jobs) this.#review(job)
    const byNeed = [...versions].sort((a, b) => Number(b.isFirst) - Number(a.isFirst) || a.number - b.number)
    for (const version of byNeed) for (const edge of edges) this.#visit(version, edge)
    return this.#plan
  }

  /** The edges that hold the version by its placement: of each site first those that have it or get it already. */
  #chooseEdges(version: FactVersion): Set<string> {
    const { sites, edges, jobs, versions } = this.#facts
    const rank = ({ id, isOnline }: FactEdge): number[] => [
      this.#copies.has(pairOf(version.id, id)) ? 0 : 1,
      jobs.some(({ kind, edgeId, versionId }) => kind === 'fetch' && edgeId === id && versionId === version.id) ? 0 : 1,
      -versions.filter((one) => this.#copies.has(pairOf(one.id, id))).length,
      isOnline ? 0 : 1,
    ]
    const chosen = new Set<string>()
    for (const { id: siteId, rule } of sites) {
      const ofSite = edges.filter((edge) => edge.siteId === siteId)
      const ranked = ofSite.map((edge) => ({ edge, rank: rank(edge) }))
      ranked.sort((a, b) => compare(a.rank, b.rank) || (a.edge.id < b.edge.id ? -1 : 1))
      for (const { edge } of ranked.slice(0, rule.edges ?? ranked.length)) chosen.add(edge.id)
    }
    return chosen
  }

  #isChosen(versionId: string, edgeId: string): boolean {
    return this.#chosen.get(versionId)?.has(edgeId) ?? false
  }

  /** Ends what nobody needs any more, and what another edge can do now. */
  #review(job: FactJob): void {
    const { id, kind, edgeId, versionId, rateBytesPerSecond } = job
    const edge = this.#edges.get(edgeId)
    const isNeeded =
      kind === 'pack' ? this.#plan.lacking.has(versionId) : edge !== undefined && this.#isChosen(versionId, edgeId)
    if (!isNeeded || !edge) {
      this.#plan.cancelled.push(id)
      return
    }
    if (kind === 'fetch' && this.#isMisplaced(job, edge)) {
      this.#plan.cancelled.push(id)
      this.#transfers.set(edgeId, this.#transfersOf(edge) - 1)
      this.#turns += 1
      return
    }
    const rate = this.#rateOf(edge)
    if (rate !== rateBytesPerSecond) this.#plan.rates.push({ jobId: id, rateBytesPerSecond: rate })
  }

  /**
   * Whether a fetch is to be ordered anew, which keeps its pieces: nobody gets the difference into the site any more,
   * or two edges do.
   */
  #isMisplaced(job: FactJob, edge: FactEdge): boolean {
    const { id, differenceId, fromControlPlane, progressBytes } = job
    if (!edge.isOnline || differenceId === null) return false
    if (!fromControlPlane) return !this.#enters(differenceId, edge.siteId)
    if (this.#setbacks.has(`fetch ${pairOf(job.versionId, edge.id)}`)) return false
    return this.#jobs('fetch').some(
      (one) =>
        one.id !== id &&
        one.differenceId === differenceId &&
        one.fromControlPlane &&
        this.#isOnlineAt(edge.siteId, one.edgeId) &&
        (one.progressBytes > progressBytes || (one.progressBytes === progressBytes && one.id < id)),
    )
  }

  #visit(version: FactVersion, edge: FactEdge): void {
    const copy = this.#copies.get(pairOf(version.id, edge.id))
    if (copy) this.#tell(version, edge, { state: copy === 'damaged' ? 'damaged' : 'holds' })
    else if (this.#isChosen(version.id, edge.id)) this.#visitLacking(version, edge)
  }

  #visitLacking(version: FactVersion, edge: FactEdge): void {
    const job = this.#jobs('fetch').find(({ edgeId, versionId }) => edgeId === edge.id && versionId === version.id)
    if (job && edge.isOnline) {
      const { progressBytes, totalBytes } = job
      this.#tell(version, edge, { state: 'fetching', progressBytes, totalBytes })
      return
    }
    const setback = this.#setbacks.get(`fetch ${pairOf(version.id, edge.id)}`)
    const waitsFor = job
      ? 'edge_offline'
      : (this.#whyNot(version, edge, setback) ?? this.#fetch(version, edge, setback))
    const isPaused = waitsFor === 'failed' || waitsFor === 'cancelled'
    this.#tell(version, edge, {
      state: waitsFor === null ? 'fetching' : 'lacks',
      waitsFor,
      retryAt: isPaused && setback ? retryAt(setback) : null,
      message: this.#shortages.get(pairOf(version.id, edge.id)) ?? setback?.message ?? null,
    })
  }

  #tell({ id: versionId }: FactVersion, { id: edgeId }: FactEdge, more: Partial<Cell> & Pick<Cell, 'state'>): void {
    const empty = { waitsFor: null, retryAt: null, message: null, progressBytes: 0, totalBytes: 0 }
    this.#plan.cells.push(Object.assign({ versionId, edgeId }, empty, more))
  }

  /** Why the edge itself fetches nothing now; null: it can. */
  #whyNot(version: FactVersion, edge: FactEdge, setback: FactSetback | undefined): WaitReason | null {
    const { now } = this.#facts
    if (!edge.isOnline) return 'edge_offline'
    if (!edge.hasStore) return 'edge_without_store'
    if (!edge.fetches) return 'edge_release'
    if (setback && retryAt(setback) > now) return setback.isCancelled ? 'cancelled' : 'failed'
    return this.#waitsForBase(version, edge) ? 'base' : null
  }

  /** A version comes after its parent, of which it is a small difference; one that devices boot waits for nothing. */
  #waitsForBase({ parentVersionId, isFirst }: FactVersion, edge: FactEdge): boolean {
    const parent = this.#versions.get(parentVersionId ?? '')
    if (!parent || isFirst) return false
    if (this.#copies.has(pairOf(parent.id, edge.id)) || !this.#isChosen(parent.id, edge.id)) return false
    if (this.#setbacks.has(`fetch ${pairOf(parent.id, edge.id)}`)) return false
    return this.#facts.edges.some(({ id }) => this.#has(parent.id, id))
  }

  /** Orders the fetch, or what has to be there first. @returns why it does not start; null: it does */
  #fetch(version: FactVersion, edge: FactEdge, setback: FactSetback | undefined): WaitReason | null {
    const parent = this.#versions.get(version.parentVersionId ?? '')
    const base = parent && this.#has(parent.id, edge.id) ? parent.id : null
    const difference = this.#facts.differences.find(
      ({ versionId, baseVersionId }) => versionId === version.id && baseVersionId === base,
    )
    const source = difference && this.#sourceOf(difference, edge, setback)
    if (!difference || !source) return this.#pack(version, base, { edge, difference })
    if (!this.#fits(version, edge, difference)) return 'space'
    if (!this.#isOpen(edge)) return 'window'
    if (!this.#takeTurn(edge)) return 'turn'
    this.#takeSpace(edge, difference)
    this.#plan.fetches.push({
      edgeId: edge.id,
      versionId: version.id,
      difference,
      ...source,
      rateBytesPerSecond: this.#rateOf(edge),
    })
    return null
  }

  /** An edge that has not reported its space finds out itself. */
  #fits({ id: versionId }: FactVersion, { id: edgeId }: FactEdge, difference: FactDifference): boolean {
    const free = this.#free.get(edgeId) ?? null
    const needed = neededBytes(difference) + freeBytesMin
    if (free === null || needed <= free) return true
    const text = `it needs ${byteText(needed)}, and ${byteText(Math.max(0, free))} are free`
    this.#shortages.set(pairOf(versionId, edgeId), text)
    return false
  }

  #takeSpace({ id }: FactEdge, difference: FactDifference): void {
    const free = this.#free.get(id) ?? null
    if (free !== null) this.#free.set(id, free - neededBytes(difference))
  }

  /**
   * Where the edge gets a difference: from edges of its site; the first one of a site, from the control plane. After a
   * failure it also asks the control plane.
   * @returns null: nobody has it
   */
  #sourceOf(difference: FactDifference, edge: FactEdge, setback: FactSetback | undefined) {
    if (!difference.isPacked || difference.listSha256 === null) return null
    const isStored = difference.isStored && this.#facts.hasObjects
    if (this.#enters(difference.id, edge.siteId)) {
      const hasFailed = (setback?.failures ?? 0) > 0
      return { sourceEdgeIds: this.#sendersTo(edge, difference), fromControlPlane: hasFailed && isStored }
    }
    return isStored ? { sourceEdgeIds: [], fromControlPlane: true } : null
  }

  /**
   * Edges of the site that keep a difference, or are to get it: they serve the pieces that they have. Each edge begins
   * with the one after it, so that they share the work.
   */
  #sendersTo({ id: ownId, siteId }: FactEdge, difference: FactDifference): string[] {
    const { versionId, edgeIds } = difference
    const ids = this.#facts.edges
      .filter((edge) => edge.id !== ownId && edge.siteId === siteId && edge.isOnline)
      .map(({ id }) => id)
      .filter((id) => edgeIds.includes(id) || (this.#isChosen(versionId, id) && !this.#has(versionId, id)))
    ids.sort()
    return [...ids.filter((id) => id > ownId), ...ids.filter((id) => id < ownId)].slice(0, differenceSourcesMax)
  }

  /** Whether an edge of the site keeps the difference, or gets it from the control plane. */
  #enters(differenceId: string, siteId: string): boolean {
    const keepers = this.#facts.differences.find(({ id }) => id === differenceId)?.edgeIds ?? []
    return (
      keepers.some((id) => this.#isOnlineAt(siteId, id)) ||
      this.#jobs('fetch').some(
        (job) => job.differenceId === differenceId && job.fromControlPlane && this.#isOnlineAt(siteId, job.edgeId),
      ) ||
      this.#plan.fetches.some(
        (one) => one.difference.id === differenceId && one.fromControlPlane && this.#isOnlineAt(siteId, one.edgeId),
      )
    )
  }

  #isOnlineAt(siteId: string, edgeId: string): boolean {
    const edge = this.#edges.get(edgeId)
    return edge?.siteId === siteId && edge.isOnline
  }

  /** Has the difference packed at an edge that holds the version and its base. */
  #pack(
    { id: versionId }: FactVersion,
    baseVersionId: string | null,
    { edge, difference }: { edge: FactEdge; difference: FactDifference | undefined },
  ): WaitReason {
    const { edges, hasObjects, now } = this.#facts
    const isSame = (one: { versionId: string; baseVersionId: string | null }) =>
      one.versionId === versionId && one.baseVersionId === baseVersionId
    if (this.#plan.packs.some(isSame)) return 'packing'
    const active = this.#jobs('pack').find(isSame)
    if (active && this.#edges.get(active.edgeId)?.isOnline) return 'packing'
    if (!edges.some(({ id }) => this.#has(versionId, id))) return 'no_holder'
    const holders = edges.filter(
      ({ id, isOnline }) =>
        isOnline && this.#has(versionId, id) && (baseVersionId === null || this.#has(baseVersionId, id)),
    )
    // Without an object store, only an edge of the same site can be asked.
    const reachable = hasObjects ? holders : holders.filter(({ siteId }) => siteId === edge.siteId)
    if (holders.length > 0 && reachable.length === 0) return 'no_object_store'
    if (reachable.length === 0) return 'holder_offline'
    const packing = reachable.filter(({ packs }) => packs)
    if (packing.length === 0) return 'edge_release'
    const setbackOf = ({ id }: FactEdge) => this.#setbacks.get(`pack ${pairOf(versionId, id)}`)
    const ready = packing.filter((one) => {
      const setback = setbackOf(one)
      return !setback || retryAt(setback) <= now
    })
    if (ready.length === 0) return packing.some((one) => setbackOf(one)?.isCancelled) ? 'cancelled' : 'failed'
    // Window and limit of a site also hold for what leaves it.
    const open = hasObjects ? ready.filter((one) => this.#isOpen(one)) : ready
    if (open.length === 0) return 'window'
    open.sort((a, b) => this.#transfersOf(a) - this.#transfersOf(b) || (a.id < b.id ? -1 : 1))
    const [packer] = open
    if (!packer || !this.#takeTurn(packer)) return 'turn'
    if (active) this.#plan.cancelled.push(active.id)
    const differenceId = difference?.id ?? null
    const rateBytesPerSecond = this.#rateOf(packer)
    const order = { versionId, baseVersionId, differenceId, rateBytesPerSecond, toControlPlane: hasObjects }
    this.#plan.packs.push({ edgeId: packer.id, ...order })
    return 'packing'
  }

  /** Whole, as far as is known. */
  #has(versionId: string, edgeId: string): boolean {
    const copy = this.#copies.get(pairOf(versionId, edgeId))
    return copy === 'present' || copy === 'arrived'
  }

  #jobs(kind: FactJob['kind']): FactJob[] {
    const { cancelled } = this.#plan
    return this.#facts.jobs.filter((job) => job.kind === kind && !cancelled.includes(job.id))
  }

  #transfersOf({ id }: FactEdge): number {
    return this.#transfers.get(id) ?? 0
  }

  #isOpen({ siteId }: FactEdge): boolean {
    const site = this.#sites.get(siteId)
    return !site || isOpen(site.rule.window, site.timeZone, this.#facts.now)
  }

  #rateOf({ siteId }: FactEdge): number | null {
    return this.#sites.get(siteId)?.rule.rateBytesPerSecond ?? null
  }

  #takeTurn(edge: FactEdge): boolean {
    const active = this.#transfersOf(edge)
    if (this.#turns <= 0 || active >= transfersPerEdgeMax || edge.jobs >= storeJobsMax) return false
    this.#turns -= 1
    this.#transfers.set(edge.id, active + 1)
    return true
  }
}

/** The file, and at least as much in the store: a difference is compressed. */
function neededBytes({ sizeBytes }: FactDifference): number {
  return 2 * Number(sizeBytes ?? 0n)
}

function compare(left: number[], right: number[]): number {
  const index = left.findIndex((value, at) => value !== right[at])
  return index < 0 ? 0 : (left[index] ?? 0) - (right[index] ?? 0)
}
