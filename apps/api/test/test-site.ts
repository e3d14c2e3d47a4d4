import {
  type BootReport,
  type DesiredState,
  type DiscoveredDevice,
  desiredState,
  type Report,
  type StateEnvelope,
} from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import type { Role } from '../src/rules/permissions.ts'
import { EdgeClient } from './edge-client.ts'
import { startTestApi, type TestApi } from './test-api.ts'
import { callProcedure, mutate, type ProcedureAnswer, query } from './test-client.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from './test-tenant.ts'

let others = 0

type UnnumberedReport = Report extends infer One ? (One extends Report ? Omit<One, 'seq'> : never) : never

/** A tenant with somebody signed in and an enrolled edge that reports. */
export class TestSite {
  readonly api: TestApi
  readonly tenant: TestTenant
  readonly cookie: string
  readonly edge: EdgeClient
  readonly #nextSeq = new Map<EdgeClient, number>()

  private constructor(api: TestApi, parts: { tenant: TestTenant; cookie: string; edge: EdgeClient }) {
    this.api = api
    this.tenant = parts.tenant
    this.cookie = parts.cookie
    this.edge = parts.edge
  }

  static async open(api: TestApi, slug: string, role: Role): Promise<TestSite> {
    const tenant = await createTenant(api, slug)
    const cookie = await signInAs(api, tenant.organizationId, role)
    const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
    return new TestSite(api, { tenant, cookie, edge })
  }

  /** Another organization's, at the same API. */
  other(role: Role): Promise<TestSite> {
    others += 1
    return TestSite.open(this.api, `other-${others}`, role)
  }

  get mac(): string {
    return this.tenant.macs[0] ?? ''
  }

  get deviceId(): string {
    return this.tenant.deviceIds[0] ?? ''
  }

  /** The edge reports these boots, in one batch, and they are applied. */
  async report(...boots: BootReport[]): Promise<void> {
    await this.send(boots.map((boot) => ({ type: 'boot', boot })))
  }

  /** The edge reports machines that nobody has registered. */
  async discover(...devices: DiscoveredDevice[]): Promise<void> {
    await this.send(devices.map((device) => ({ type: 'discovered', device })))
  }

  /** An edge sends these in one batch, with its next numbers, and they are applied. */
  async send(reports: UnnumberedReport[], edge = this.edge): Promise<void> {
    const fromSeq = this.#nextSeq.get(edge) ?? 1
    const numbered = reports.map((report, index) => ({ ...report, seq: fromSeq + index }) as Report)
    const answer = await edge.reports(fromSeq, numbered)
    expect(answer.status).toBe(200)
    this.#nextSeq.set(edge, fromSeq + reports.length)
  }

  /** Revokes an edge as the person who is signed in. */
  async revokeEdge(edgeId: string): Promise<void> {
    await this.mutate('edge.revoke', await seenEdge(this.api, edgeId))
  }

  /** One more edge of the site. */
  async enrolEdge(): Promise<EdgeClient> {
    return EdgeClient.enrolled(this.api.url, await makeJoinToken(this.api, this.tenant))
  }

  /** An edge's desired state now. */
  async state(edge = this.edge): Promise<DesiredState> {
    const { body } = await edge.state('0.0', 0)
    return desiredState.parse(JSON.parse((body as unknown as StateEnvelope).payload))
  }

  /** Throws unless it went well. */
  query<T>(path: string, input?: unknown): Promise<T> {
    return query<T>(this.api, this.cookie, path, input)
  }

  /** Throws unless it went well. */
  mutate<T>(path: string, input: unknown): Promise<T> {
    return mutate<T>(this.api, this.cookie, path, input)
  }

  tryQuery(path: string, input: unknown): Promise<ProcedureAnswer> {
    return callProcedure(this.api, { path, type: 'query', input, cookie: this.cookie })
  }

  tryMutation(path: string, input: unknown, cookie = this.cookie): Promise<ProcedureAnswer> {
    return callProcedure(this.api, { path, type: 'mutation', input, cookie })
  }
}

/** The input of `edge.revoke`, as the edge's page has it. */
export async function seenEdge(api: TestApi, edgeId: string) {
  const select = { name: true, revision: true } as const
  return { edgeId, ...(await api.db.edge.findFirstOrThrow({ where: { id: edgeId }, select })) }
}

/** Starts one API for the tests of a file, and for each test a separate site with a signed-in person of this role. */
export function useTestSite(role: Role): () => TestSite {
  let api: TestApi | undefined
  let site: TestSite | undefined
  let round = 0
  beforeAll(async () => {
    api = await startTestApi()
  })
  beforeEach(async () => {
    if (!api) throw new Error('the API did not start')
    round += 1
    site = await TestSite.open(api, `own-${round}`, role)
  })
  afterAll(() => api?.close())
  return () => {
    if (!site) throw new Error('a site is there inside tests only')
    return site
  }
}
