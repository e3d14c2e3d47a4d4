import { randomUUID } from 'node:crypto'
import type {
  BootReport,
  DesiredState,
  DiscoveredDevice,
  Report,
  StateEnvelope,
} from '@bootfarm/proto/uplink'
import { desiredState } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, beforeEach } from 'vitest'
import type { Role } from '../src/domain/actor.ts'
import { bootWith, EdgeClient } from './edge-client.ts'
import { startTestApi, type TestApi } from './test-api.ts'
import { callProcedure, mutate, type ProcedureAnswer, query } from './test-client.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from './test-tenant.ts'

/** A report without its number. */
export type TestReport = Report extends infer One ? (One extends Report ? Omit<One, 'seq'> : never) : never

/** An organization of its own for each test of a file, with an edge that reports and somebody signed in. */
export class TestSite {
  readonly api: TestApi
  readonly tenant: TestTenant
  readonly cookie: string
  readonly edge: EdgeClient
  readonly #nextSeq = new Map<EdgeClient, number>()

  private constructor(parts: Pick<TestSite, 'api' | 'tenant' | 'cookie' | 'edge'>) {
    this.api = parts.api
    this.tenant = parts.tenant
    this.cookie = parts.cookie
    this.edge = parts.edge
  }

  static async create(api: TestApi, role: Role): Promise<TestSite> {
    const tenant = await createTenant(api, `own-${randomUUID().slice(0, 8)}`)
    const cookie = await signInAs(api, tenant.organizationId, role)
    const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
    return new TestSite({ api, tenant, cookie, edge })
  }

  /** One more edge of the site. */
  async enrolEdge(): Promise<EdgeClient> {
    return EdgeClient.enrolled(this.api.url, await makeJoinToken(this.api, this.tenant))
  }

  /** Sends these reports with the edge's next numbers; throws unless all are taken. */
  async report(reports: TestReport[], edge = this.edge): Promise<void> {
    const fromSeq = this.#nextSeq.get(edge) ?? 1
    const numbered = reports.map((report, index) => ({ ...report, seq: fromSeq + index }) as Report)
    const { status, body } = await edge.reports(fromSeq, numbered)
    if (status !== 200 || body?.ackedSeq !== fromSeq + reports.length - 1)
      throw new Error(`the reports were answered ${status}: ${JSON.stringify(body)}`)
    this.#nextSeq.set(edge, fromSeq + reports.length)
  }

  /** Reports a boot of the first device, that began a minute ago unless it says otherwise. */
  async reportBoot(changes: Partial<BootReport> = {}, edge = this.edge): Promise<string> {
    const startedUnixMs = this.api.clock.now.getTime() - 60_000
    const boot = bootWith({ id: randomUUID(), mac: this.tenant.macs[0] ?? '', startedUnixMs, ...changes })
    await this.report([{ type: 'boot', boot }], edge)
    return boot.id
  }

  reportDiscovered(...devices: DiscoveredDevice[]): Promise<void> {
    return this.report(devices.map((device) => ({ type: 'discovered', device })))
  }

  /** The edge's desired state now. */
  async state(edge = this.edge): Promise<DesiredState> {
    const { body } = await edge.state('0.0', 0)
    return desiredState.parse(JSON.parse((body as unknown as StateEnvelope).payload))
  }

  query<T>(path: string, input?: object): Promise<T> {
    return query<T>(this.api, this.cookie, path, input)
  }

  mutate<T>(path: string, input: object): Promise<T> {
    return mutate<T>(this.api, this.cookie, path, input)
  }

  /** Also what is refused. */
  try(path: string, input: object, cookie = this.cookie): Promise<ProcedureAnswer> {
    return callProcedure(this.api, { path, type: 'mutation', input, cookie })
  }
}

/** Starts an API for the file; the function that it gives returns the running test's site. */
export function useTestSite(role: Role): () => TestSite {
  let api: TestApi
  let site: TestSite
  beforeAll(async () => {
    api = await startTestApi()
  })
  beforeEach(async () => {
    site = await TestSite.create(api, role)
  })
  afterAll(() => api.close())
  return () => site
}

/** A machine that nobody has registered, which asked at the test clock's begin, unless changed. */
export function discoveredWith(changes: Partial<DiscoveredDevice> & { mac: string }): DiscoveredDevice {
  const seenUnixMs = Date.parse('2026-11-20T11:59:30Z')
  return {
    machineId: '4c4c4544-0042-3510-8051-b4c04f4d3332',
    vendorClass: 'PXEClient:Arch:00007:UNDI:003016',
    clientArch: 7,
    asked: 'dhcp',
    firstSeenUnixMs: seenUnixMs,
    lastSeenUnixMs: seenUnixMs,
    requests: 1,
    ...changes,
  }
}
