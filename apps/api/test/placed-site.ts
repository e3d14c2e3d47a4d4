import type { StoredVersion, StoreJobOrder, StoreJobReport } from '@bootfarm/proto/uplink'
import { expect } from 'vitest'
import { keepPlacements } from '../src/placement/keep-placements.ts'
import { EdgeClient } from './edge-client.ts'
import type { TestApi } from './test-api.ts'
import type { TestSite } from './test-site.ts'
import { makeJoinToken } from './test-tenant.ts'

const publicKey = Buffer.alloc(32, 9).toString('base64')
const sizes = { ownBytes: 5, sharedBytes: 7, reclaimableBytes: 3 }
const sizeBytes = 1000
const listSha256 = 'ab'.repeat(32)

interface TwoEdges {
  placed: PlacedSite
  first: string
  maker: EdgeClient
  second: EdgeClient
}

/** Edges that pack and fetch, as the control plane sees them, and its keeper of placements. */
export class PlacedSite {
  readonly #site: TestSite
  #scan = 0

  constructor(site: TestSite) {
    this.#site = site
  }

  /** Two new edges of the site; one holds the version that devices boot. */
  static async withTwoEdges(site: TestSite): Promise<TwoEdges> {
    const placed = new PlacedSite(site)
    const { organizationId, versionId: first } = site.tenant
    await site.api.db.vdiskVersion.update({
      where: { organizationId_id: { organizationId, id: first } },
      data: { manifestRoot: Uint8Array.from(Buffer.alloc(32, 1)), manifestCounter: 1 },
    })
    await site.revokeEdge(site.edge.edgeId)
    const [maker, second] = [await placed.enrol(), await placed.enrol()]
    await placed.hold(maker, first)
    return { placed, first, maker, second }
  }

  get api(): TestApi {
    return this.#site.api
  }

  async enrol(siteId = this.#site.tenant.siteId): Promise<EdgeClient> {
    const edge = await EdgeClient.enrolled(
      this.api.url,
      await makeJoinToken(this.api, { ...this.#site.tenant, siteId }),
    )
    await this.hear(edge)
    await this.hold(edge)
    return edge
  }

  async makeSite(name: string, timeZone = 'UTC'): Promise<string> {
    const { organizationId, farmId } = this.#site.tenant
    return (await this.api.db.site.create({ data: { organizationId, farmId, name, timeZone } })).id
  }

  /** They are online for the next 75 s. */
  async hear(...edges: EdgeClient[]): Promise<void> {
    for (const edge of edges)
      expect((await edge.heartbeat({ storeJobKinds: ['verify', 'pack', 'fetch'] })).status).toBe(200)
  }

  /** The edge's store holds these versions and no others. */
  async hold(edge: EdgeClient, ...versionIds: string[]): Promise<void> {
    const versions: StoredVersion[] = versionIds.map((versionId) => ({ versionId, state: 'present', ...sizes }))
    this.#scan += 1
    await this.#say(edge, { inventory: { scan: this.#scan, isLast: true, versions } })
  }

  async end(edge: EdgeClient, order: StoreJobOrder | undefined, more: Partial<StoreJobReport> = {}): Promise<void> {
    const { organizationId } = this.#site.tenant
    // The store has it: its pieces are those of another test.
    if (order?.kind === 'pack' && more.state !== 'failed')
      await this.api.db.difference.updateMany({
        where: { organizationId, id: order.differenceId ?? '' },
        data: { sizeBytes, listSha256, storedAt: order.toControlPlane ? this.api.clock.read() : null },
      })
    const packed = order?.kind === 'pack' ? { packed: { sizeBytes, listSha256 } } : {}
    const ended = { id: order?.id ?? '', state: 'done' as const, progressBytes: 9, totalBytes: 9, ...packed }
    await this.#say(edge, { jobs: [{ ...ended, ...more }] })
  }

  async #say(edge: EdgeClient, message: object): Promise<void> {
    const store = { id: edge.edgeId, publicKey, format: 1 }
    const body = JSON.stringify({ store, jobs: [], ...message })
    const answer = await edge.send({ method: 'POST', path: '/edge/v1/store', body })
    expect([answer.status, answer.body]).toEqual([200, expect.anything()])
  }

  /** One run of the keeper. */
  keep({ serverDb: db, clock, objects }: TestApi = this.api): Promise<void> {
    return keepPlacements({ db, clock: clock.read, objects })
  }

  /** The edge's jobs after a run. */
  async jobsOf(edge: EdgeClient): Promise<StoreJobOrder[]> {
    await this.keep()
    return (await this.#site.state(edge)).storeJobs ?? []
  }

  /** One more sealed version. */
  async makeVersion(number: number, parentVersionId: string | null, more: object = {}): Promise<string> {
    const { organizationId, vdiskId } = this.#site.tenant
    const facts = { sizeBytes: 4096, diskPath: `v${number}`, commandLine: '', manifestCounter: number }
    const manifestRoot = Uint8Array.from(Buffer.alloc(32, number))
    const data = { organizationId, vdiskId, number, parentVersionId, manifestRoot, ...facts, ...more }
    return (await this.api.db.vdiskVersion.create({ data })).id
  }
}
