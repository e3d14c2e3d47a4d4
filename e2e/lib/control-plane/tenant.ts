import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { bootReports, bootWith, EdgeClient } from '@bootfarm/api/testing/edge-client'
import { createPerson, createTenant, makeJoinToken, type TestTenant } from '@bootfarm/api/testing/tenant'
import { createDb } from '@bootfarm/db'
import {
  type BootReport,
  type DesiredState,
  type DiscoveredDevice,
  desiredState,
  type GuestReport,
  type Report,
  type ScheduleRunReport,
  type StateEnvelope,
  type StoreMessage,
} from '@bootfarm/proto/uplink'
import { required } from './api-client.ts'

/** The phases of a real boot as an edge reports them, in µs. */
const phases: [BootReport['phases'][number]['name'], number, number][] = [
  ['dhcp', 0, 2_100_000],
  ['nbp', 2_100_000, 340_000],
  ['loader', 2_440_000, 1_900_000],
  ['breather', 4_340_000, 2_260_000],
  ['stage2', 6_600_000, 8_400_000],
  ['ready', 15_000_000, 0],
]

/** A phase without traffic. */
export function phase(
  place: Pick<BootReport['phases'][number], 'name' | 'startUs' | 'durationUs'>,
): BootReport['phases'][number] {
  const bytes = { bytesIn: 0, bytesOut: 0, packetsIn: 0, packetsOut: 0 }
  return { ...place, ...bytes, source: 'observed', retries: 0, missingFragments: 0, reads: 0 }
}

const reportsAtOnce = 100

type Role = NonNullable<Parameters<typeof createPerson>[2]>

/** A separate organization in the product under test, with six devices and an edge that reports what the test wants. */
export class Tenant {
  readonly rows: TestTenant
  readonly person: { email: string; password: string }
  readonly #edge: EdgeClient
  #nextSeq = 1

  private constructor(rows: TestTenant, person: Tenant['person'], edge: EdgeClient) {
    this.rows = rows
    this.person = person
    this.#edge = edge
  }

  /** @param role of the person who may sign in */
  static async create(role: Role = 'operator', slug = randomBytes(4).toString('hex')): Promise<Tenant> {
    const db = createDb(databaseUrl())
    try {
      const clock = { now: new Date(), advance: () => {}, read: () => new Date() }
      const rows = await createTenant({ db, clock }, slug)
      const person = await createPerson({ db }, rows.organizationId, role)
      const joinToken = await makeJoinToken({ db, clock }, rows)
      return new Tenant(rows, person, await EdgeClient.enrolled(required('BOOTFARM_API_URL'), joinToken))
    } finally {
      await db.$disconnect()
    }
  }

  /** Makes a join token that is valid. */
  joinToken(): Promise<string> {
    return this.#joinToken(new Date())
  }

  /** Adds a person with this role in the whole organization. */
  async member(role: Role): Promise<Tenant['person']> {
    return this.inDatabase((db) => createPerson({ db }, this.rows.organizationId, role))
  }

  /** Makes the person a viewer of this organization too. */
  async takeIn({ email }: Tenant['person']): Promise<void> {
    await this.inDatabase(async (db) => {
      const { id: userId } = await db.user.findUniqueOrThrow({ where: { email }, select: { id: true } })
      const { organizationId } = this.rows
      await db.membership.create({ data: { organizationId, userId } })
      await db.roleGrant.create({ data: { organizationId, userId, role: 'viewer' } })
    })
  }

  /** The person signed in so long ago. */
  async signedInBefore({ email }: Tenant['person'], minutes: number): Promise<void> {
    const createdAt = new Date(Date.now() - minutes * 60_000)
    await this.inDatabase((db) => db.session.updateMany({ where: { user: { email } }, data: { createdAt } }))
  }

  /** Runs this as the owner of the database, for rows that no report makes. */
  async inDatabase<T>(work: (db: ReturnType<typeof createDb>) => Promise<T>): Promise<T> {
    const db = createDb(databaseUrl())
    try {
      return await work(db)
    } finally {
      await db.$disconnect()
    }
  }

  get edgeId(): string {
    return this.#edge.edgeId
  }

  /** Adds an edge to the site; `state` and `storeSays` accept it. */
  async secondEdge(hostname: string): Promise<EdgeClient> {
    const edge = new EdgeClient(required('BOOTFARM_API_URL'))
    const { status, body } = await edge.enrol(await this.joinToken(), { hostname })
    if (status !== 201) throw new Error(`enrolment answered ${status}: ${JSON.stringify(body)}`)
    edge.edgeId = String(body?.edgeId)
    return edge
  }

  /** Adds a site of this name with an edge. */
  async secondSite(name: string): Promise<{ siteId: string; edge: EdgeClient }> {
    const { organizationId, farmId } = this.rows
    return this.inDatabase(async (db) => {
      const site = await db.site.create({ data: { organizationId, farmId, name, timeZone: 'UTC' } })
      const clock = { now: new Date(), advance: () => {}, read: () => new Date() }
      const joinToken = await makeJoinToken({ db, clock }, { ...this.rows, siteId: site.id })
      return { siteId: site.id, edge: await EdgeClient.enrolled(required('BOOTFARM_API_URL'), joinToken) }
    })
  }

  /** Makes a join token that another edge has used. */
  async usedToken(): Promise<string> {
    const token = await this.#joinToken(new Date())
    await EdgeClient.enrolled(required('BOOTFARM_API_URL'), token)
    return token
  }

  /** Makes a join token that was created two hours ago. */
  expiredToken(): Promise<string> {
    return this.#joinToken(new Date(Date.now() - 7_200_000))
  }

  async #joinToken(now: Date): Promise<string> {
    const db = createDb(databaseUrl())
    try {
      return await makeJoinToken({ db, clock: { now, advance: () => {}, read: () => now } }, this.rows)
    } finally {
      await db.$disconnect()
    }
  }

  /** Reports this boot, by default of the first device: it became ready 15 s after its start, a minute ago. */
  report(boot: Partial<BootReport> & { id: string }): Promise<void> {
    return this.#send(
      bootWith({
        mac: this.rows.macs[0] ?? '',
        simulated: false,
        startedUnixMs: Date.now() - 75_000,
        phases: phases.map(([name, startUs, durationUs]) => phase({ name, startUs, durationUs })),
        ...boot,
      }),
    )
  }

  /** Reports these boots, in as few batches as an edge would. */
  async reportAll(boots: BootReport[]): Promise<void> {
    for (let index = 0; index < boots.length; index += reportsAtOnce)
      await this.#sendAll(bootReports(this.#nextSeq, boots.slice(index, index + reportsAtOnce)))
  }

  /** Reports a boot in its last phase. */
  reportGoingOn(boot: Partial<BootReport> & { id: string; mac: string }): Promise<void> {
    const { outcome: _none, ...report } = bootWith({ simulated: false, ...boot })
    return this.#send(report)
  }

  /** A second edge reports that the first device asked it during this boot, half a minute after its start. */
  async tellsWaiting(edge: EdgeClient, boot: { id: string; startedUnixMs: number }): Promise<void> {
    const { id: bootId, startedUnixMs } = boot
    const said = {
      bootId,
      mac: this.rows.macs[0] ?? '',
      edgeId: this.edgeId,
      startedUnixMs,
      atUs: 30_000_000,
    }
    const { status, body } = await edge.reports(1, [{ seq: 1, type: 'waiting', ...said }])
    if (status !== 200) throw new Error(`the API answered ${status}: ${JSON.stringify(body)}`)
  }

  /**
   * Sends the edge's heartbeat, as it comes every few seconds.
   * @param said in place of its usual content
   */
  async beats(edge = this.#edge, said: Parameters<EdgeClient['heartbeat']>[0] = {}): Promise<void> {
    const { status, body } = await edge.heartbeat(said)
    if (status !== 200) throw new Error(`the API answered ${status}: ${JSON.stringify(body)}`)
  }

  /** Reports unregistered machines. */
  discover(...devices: DiscoveredDevice[]): Promise<void> {
    return this.#sendAll(devices.map((device, index) => ({ seq: this.#nextSeq + index, type: 'discovered', device })))
  }

  /** Reports the progress of a schedule's run. */
  reportRun(run: ScheduleRunReport): Promise<void> {
    return this.#sendAll([{ seq: this.#nextSeq, type: 'schedule_run', run }])
  }

  /** Sends the packets of a reported boot. */
  async capture(bootId: string, pcap: Uint8Array<ArrayBuffer>): Promise<void> {
    const { status, body } = await this.#edge.capture(bootId, pcap)
    if (status !== 204) throw new Error(`the API answered ${status}: ${JSON.stringify(body)}`)
  }

  /** Reports the jobs and versions of the edge's store. */
  async storeSays(message: Partial<StoreMessage>, edge = this.#edge): Promise<void> {
    const store = { id: this.rows.siteId, publicKey: Buffer.alloc(32, 9).toString('base64'), format: 1 }
    const body = JSON.stringify({ store, jobs: [], ...message })
    const answer = await edge.send({ method: 'POST', path: '/edge/v1/store', body })
    if (answer.status !== 200) throw new Error(`the API answered ${answer.status}: ${JSON.stringify(answer.body)}`)
  }

  /** Returns the edge's current desired state. */
  async state(edge = this.#edge): Promise<DesiredState> {
    const { body } = await edge.state('0.0', 0)
    return desiredState.parse(JSON.parse((body as unknown as StateEnvelope).payload))
  }

  #send(report: BootReport): Promise<void> {
    return this.#sendAll(bootReports(this.#nextSeq, [report]))
  }

  async #sendAll(reports: Report[]): Promise<void> {
    const { status, body } = await this.#edge.reports(this.#nextSeq, reports)
    if (status !== 200) throw new Error(`the API answered ${status}: ${JSON.stringify(body)}`)
    this.#nextSeq += reports.length
  }
}

function databaseUrl(): string {
  return readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim()
}

const ms = 1000
/** A report of bootfarm-target on a UEFI machine with Debian, with the maximum number of steps. */
export const fullGuest: GuestReport = {
  kernelStartUs: 4_450_000,
  steps: [
    step('firmware', 'firmware', -12_600, 4_850),
    step('firmware', 'boot loader', -7_700, 7_650),
    step('kernel', 'kernel', 0, 830),
    step('initramfs', 'unpack', 830, 95),
    step('initramfs', 'drivers', 925, 140),
    step('initramfs', 'network', 1_065, 820),
    step('initramfs', 'stream', 1_885, 240),
    step('initramfs', 'root file system', 2_125, 96),
    step('initramfs', 'overlay', 2_221, 12),
    step('system', 'systemd', 2_240, 8_310),
    step('unit', 'systemd-journal-flush.service', 3_050, 320),
    step('unit', 'systemd-udev-trigger.service', 2_900, 540),
    step('unit', 'dev-nbd0p2.device', 2_600, 1_100),
    step('unit', 'cloud-init-local.service', 3_400, 1_900),
    step('unit', 'systemd-networkd-wait-online.service'.slice(0, 32), 5_300, 2_010),
    step('unit', 'cloud-init.service', 5_350, 1_240),
    step('unit', 'apparmor.service', 3_400, 410),
    step('unit', 'ssh.service', 7_300, 260),
    step('unit', 'snapd.seeded.service', 7_350, 3_170),
    step('unit', 'polkit.service', 7_400, 180),
    step('unit', 'getty.target', 7_600, 1),
    step('unit', 'unattended-upgrades.service', 7_620, 300),
    step('unit', 'user@1000.service', 9_000, 220),
    step('unit', 'multi-user.target', 10_540, 2),
  ],
}

function step(
  group: GuestReport['steps'][number]['group'],
  name: string,
  startMs: number,
  durationMs: number,
): GuestReport['steps'][number] {
  return { group, name, startUs: startMs * ms, durationUs: durationMs * ms }
}

export const cacheOf = (percent: number): NonNullable<GuestReport['writeCache']> => ({
  usedBytes: Math.ceil((percent * 2 ** 31) / 100),
  sizeBytes: 2 ** 31,
  atUs: 30_000_000,
})
