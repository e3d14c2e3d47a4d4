import { randomBytes } from 'node:crypto'
import type {
  BootReport,
  DiscoveredDevice,
  EnrolRequest,
  EnrolResponse,
  GuestReport,
  Heartbeat,
  Report,
} from '@bootfarm/proto/uplink'
import { type EdgeKeyStatement, edgeKeyText, uplinkVersion } from '@bootfarm/proto/uplink'
import { publicKeyOf, signText, uplinkSignedText } from '@bootfarm/proto/uplink-signature'

export interface UplinkAnswer {
  status: number
  /** Null where the answer has no body. */
  body: Record<string, unknown> | null
}

interface SendOptions {
  method: 'GET' | 'POST' | 'PUT'
  path: string
  body?: string | Uint8Array<ArrayBuffer>
  /** In place of the right ones. */
  headers?: Record<string, string>
  signal?: AbortSignal
}

/** The edge's side of the uplink (packages/proto/UPLINK.md), for tests. */
export class EdgeClient {
  #url: string
  seed: Uint8Array
  /** `bootfarm-uplink`; none: an edge of the first version. */
  uplinkVersion: number | null = uplinkVersion
  edgeId = '-'
  bootEpoch = 1
  counter = 0

  constructor(url: string, seed: Uint8Array = randomBytes(32)) {
    this.#url = url
    this.seed = seed
  }

  /** The control plane is another one, which knows this edge. */
  moveTo(url: string): void {
    this.#url = url
  }

  /** Enrols and takes the identity over; throws unless it went well. */
  static async enrolled(url: string, joinToken: string): Promise<EdgeClient> {
    const edge = new EdgeClient(url)
    const { status, body } = await edge.enrol(joinToken)
    if (status !== 201) throw new Error(`enrolment answered ${status}: ${JSON.stringify(body)}`)
    edge.edgeId = (body as unknown as EnrolResponse).edgeId
    return edge
  }

  enrol(joinToken: string, changes: Partial<EnrolRequest> = {}): Promise<UplinkAnswer> {
    const request: EnrolRequest = {
      version: 1,
      joinToken,
      publicKey: publicKeyOf(this.seed),
      agentVersion: '0.1.0',
      arch: 'x86_64',
      hostname: 'edge-1',
      ...changes,
    }
    const path = '/edge/v1/enrol'
    const body = JSON.stringify(request)
    const facts = { method: 'POST', path, edgeId: '-', bootEpoch: 0, counter: 0, body: Buffer.from(body) }
    const headers = signatureHeaders('-', 0, {
      counter: 0,
      signature: signText(uplinkSignedText(facts), this.seed),
    })
    return this.#fetch({ method: 'POST', path, body, headers })
  }

  state(after: string, waitMs: number, signal?: AbortSignal): Promise<UplinkAnswer> {
    const path = `/edge/v1/state?after=${after}&waitMs=${waitMs}`
    return this.send({ method: 'GET', path, ...(signal ? { signal } : {}) })
  }

  reports(fromSeq: number, reports: Report[], bootEpoch = this.bootEpoch): Promise<UplinkAnswer> {
    return this.send({
      method: 'POST',
      path: '/edge/v1/reports',
      body: JSON.stringify({ bootEpoch, fromSeq, reports }),
    })
  }

  capture(bootId: string, pcap: Uint8Array<ArrayBuffer>): Promise<UplinkAnswer> {
    return this.send({
      method: 'PUT',
      path: `/edge/v1/boots/${bootId}/capture`,
      body: pcap,
      headers: { 'content-type': 'application/vnd.tcpdump.pcap' },
    })
  }

  filesRead(bootId: string, report: unknown): Promise<UplinkAnswer> {
    return this.send({ method: 'PUT', path: `/edge/v1/boots/${bootId}/reads`, body: JSON.stringify(report) })
  }

  heartbeat(changes: Partial<Heartbeat> = {}): Promise<UplinkAnswer> {
    return this.send({
      method: 'POST',
      path: '/edge/v1/heartbeat',
      body: JSON.stringify(heartbeatWith(changes)),
    })
  }

  /** The request that is both. */
  poll(after: string, waitMs: number, changes: Partial<Heartbeat> = {}): Promise<UplinkAnswer> {
    const path = `/edge/v1/state?after=${after}&waitMs=${waitMs}`
    return this.send({ method: 'POST', path, body: JSON.stringify(heartbeatWith(changes)) })
  }

  /** A statement that this edge's key follows another's. */
  statement(from: Uint8Array, to: Uint8Array): EdgeKeyStatement {
    const keys = { oldPublicKey: publicKeyOf(from), newPublicKey: publicKeyOf(to) }
    return { ...keys, signature: signText(edgeKeyText(this.edgeId, keys), from) }
  }

  /** Signed by the key that it has now. */
  rotateKey(statements: EdgeKeyStatement[]): Promise<UplinkAnswer> {
    return this.send({
      method: 'POST',
      path: '/edge/v1/rotate-key',
      body: JSON.stringify({ version: 1, statements }),
    })
  }

  /** Signs with the next counter and sends. */
  send(options: SendOptions): Promise<UplinkAnswer> {
    this.counter += 1
    return this.#fetch({ ...options, headers: { ...this.#sign(options), ...options.headers } })
  }

  /** Headers of a rightly signed request, for wherever else they are sent. */
  signatureOf(method: SendOptions['method'], path: string, body = ''): Record<string, string> {
    this.counter += 1
    return this.#sign({ method, path, body })
  }

  #sign({ method, path, body = '' }: SendOptions): Record<string, string> {
    const { edgeId, bootEpoch, counter } = this
    const text = uplinkSignedText({ method, path, edgeId, bootEpoch, counter, body: Buffer.from(body) })
    return signatureHeaders(edgeId, bootEpoch, { counter, signature: signText(text, this.seed) })
  }

  async #fetch({ method, path, body, headers, signal }: SendOptions): Promise<UplinkAnswer> {
    const answer = await fetch(this.#url + path, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(this.uplinkVersion === null ? {} : { 'bootfarm-uplink': `${this.uplinkVersion}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
    })
    const text = await answer.text()
    return { status: answer.status, body: text ? JSON.parse(text) : null }
  }
}

function signatureHeaders(
  edgeId: string,
  bootEpoch: number,
  { counter, signature }: { counter: number; signature: string },
): Record<string, string> {
  return {
    'bootfarm-edge': edgeId,
    'bootfarm-epoch': String(bootEpoch),
    'bootfarm-counter': String(counter),
    'bootfarm-signature': signature,
  }
}

export function heartbeatWith(changes: Partial<Heartbeat> = {}): Heartbeat {
  return {
    agentVersion: '0.1.0',
    arch: 'x86_64',
    uptimeMs: 5_000,
    clockUnixMs: 1_795_000_000_000,
    devicesBooting: 0,
    reportBacklog: 0,
    state: { incarnation: 0, counter: 0 },
    ignored: {},
    ...changes,
  }
}

const phase = {
  source: 'observed' as const,
  bytesIn: 100,
  bytesOut: 1_000,
  packetsIn: 1,
  packetsOut: 2,
  retries: 1,
  missingFragments: 0,
  reads: 0,
}

/** A boot that became ready after 3 s, unless changed. */
export function bootWith(changes: Partial<BootReport> & { id: string; mac: string }): BootReport {
  return {
    revision: 1,
    simulated: true,
    generated: false,
    startedUnixMs: Date.parse('2026-11-20T11:59:00Z'),
    reconnects: 0,
    phases: [
      { ...phase, name: 'dhcp', startUs: 0, durationUs: 1_000_000 },
      { ...phase, name: 'stage2', startUs: 1_000_000, durationUs: 2_000_000 },
    ],
    outcome: { kind: 'ready' },
    ...changes,
  }
}

/** Returns an unregistered machine that asked at the start of the test clock, unless changed. */
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

/** A device whose kernel started 1.2 s after its first packet, with a step of each group, unless changed. */
export function guestWith(changes: Partial<GuestReport> = {}): GuestReport {
  return {
    kernelStartUs: 1_200_000,
    steps: [
      { group: 'firmware', name: 'firmware', startUs: -3_000_000, durationUs: 1_500_000 },
      { group: 'kernel', name: 'kernel', startUs: 0, durationUs: 400_000 },
      { group: 'initramfs', name: 'modules', startUs: 400_000, durationUs: 90_000 },
      { group: 'initramfs', name: 'disk', startUs: 490_000, durationUs: 210_000 },
      { group: 'system', name: 'systemd', startUs: 700_000, durationUs: 1_000_000 },
      { group: 'unit', name: 'ssh.service', startUs: 900_000, durationUs: 620_000 },
    ],
    ...changes,
  }
}

export function bootReports(fromSeq: number, boots: BootReport[]): Report[] {
  return boots.map((boot, index) => ({ seq: fromSeq + index, type: 'boot' as const, boot }))
}
