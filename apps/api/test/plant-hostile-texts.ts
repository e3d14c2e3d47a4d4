import { randomUUID } from 'node:crypto'
import {
  type DesiredState,
  desiredState,
  type Heartbeat,
  type Report,
  type StateEnvelope,
} from '@bootfarm/proto/uplink'
import { bootWith, discoveredWith, EdgeClient, guestWith } from './edge-client.ts'
import { bendingTexts, hostileTexts, printableTexts } from './hostile-texts.ts'
import type { TestTenant } from './test-tenant.ts'

export interface Planted {
  edgeId: string
  bootId: string
  menuId: string
  scheduleId: string
  runId: string
  rolloutId: string
  experimentId: string
  vdiskId: string
  webhookId: string
  serviceAccountId: string
  farmId: string
  siteId: string
  collectionId: string
  deviceId: string
}

interface Ground {
  url: string
  rows: TestTenant
  /** For two edges. */
  joinTokens: [string, string]
  now: number
  /** One that the control plane has. */
  release: string
  mutate<T>(path: string, input: object): Promise<T>
  /** Does a step of the job that advances rollouts; absent where the job runs. */
  advanceRollouts?(): Promise<void>
}

/** What the edge says of the release that it was ordered: any word of its choice. */
export const hostileCause = `was_hacked_${'w'.repeat(21)}`

const [first = ''] = printableTexts
/** Another one each time, in turns. */
function texts(): () => string {
  let index = 0
  return () => printableTexts[index++ % printableTexts.length] ?? first
}

/**
 * Puts hostile texts wherever devices, edges and people can write: by an edge's own requests and by the API's
 * procedures. The tenant's caller is an owner.
 */
export async function plantHostileTexts(ground: Ground): Promise<Planted> {
  const { rows } = ground
  const edge = new EdgeClient(ground.url)
  const { status, body } = await edge.enrol(ground.joinTokens[0], {
    hostname: hostileTexts['an element'],
    agentVersion: hostileTexts['an element that fails'],
  })
  if (status !== 201) throw new Error(`enrolment answered ${status}: ${JSON.stringify(body)}`)
  edge.edgeId = String(body?.edgeId)
  const bootId = await plantByDevices(ground, edge)
  const made = await plantByPeople(ground)
  await plantStoreJob(ground, edge, made.vdiskId)
  await plantHome(ground, edge)
  const bentSiteIds = await plantBending(ground)
  const { siteIds, ...ids } = made
  const rolloutId = await plantRollout(ground, edge, [...siteIds, ...bentSiteIds])
  const experimentId = await plantExperiment(ground)
  const { farmId, siteId, collectionId, deviceIds } = rows
  const places = { farmId, siteId, collectionId, deviceId: deviceIds[0] ?? '' }
  return { ...ids, ...places, rolloutId, experimentId, edgeId: edge.edgeId, bootId }
}

async function plantByDevices({ rows, now }: Ground, edge: EdgeClient): Promise<string> {
  const next = texts()
  const boots = printableTexts.map((text, index) => ({
    ...bootWith({ id: randomUUID(), mac: rows.macs[index % rows.macs.length] ?? '' }),
    simulated: false,
    startedUnixMs: now - 60_000 * (index + 2),
    vendorClass: text,
    userClass: next(),
    menuEntry: next(),
    ip: '10.66.6.6',
    machine: { processors: 1, memoryMib: 1, driver: text.slice(0, 16) },
    network: { duplex: 'half' as const, linkMbit: 10, sizeMax: 1472, size: 1472 },
    program: { set: 'ipxe', file: next() },
    offers: [{ atUs: 1, server: '10.0.0.9', ours: false, kind: 'both' as const, file: text, vendorClass: next() }],
    lastPackets: { fromDevice: { atUs: 5, what: text }, fromEdge: { atUs: 6, what: next() } },
    guest: guestWith({
      steps: [{ group: 'unit', name: text.slice(0, 32), startUs: 0, durationUs: 5_000 }],
    }),
    outcome: { kind: 'failed' as const, phase: 'stage2' as const, cause: 'root_not_found' as const, text },
  }))
  const strangers = printableTexts.map((text, index) =>
    discoveredWith({
      mac: `02:bf:00:00:66:${index.toString(16).padStart(2, '0')}`,
      vendorClass: text,
      userClass: next(),
      hostName: next(),
      firstSeenUnixMs: now - 60_000,
      lastSeenUnixMs: now - 1_000,
    }),
  )
  const unnumbered = [
    ...boots.map((boot) => ({ type: 'boot' as const, boot })),
    ...strangers.map((device) => ({ type: 'discovered' as const, device })),
  ]
  const reports: Report[] = unnumbered.map((report, index) => ({ ...report, seq: index + 1 }))
  must(await edge.reports(1, reports))
  must(await edge.heartbeat(hostileHeartbeat(now)))
  return boots[0]?.id ?? ''
}

function hostileHeartbeat(now: number): Partial<Heartbeat> {
  const next = texts()
  return {
    agentVersion: first,
    clockUnixMs: now,
    storeJobKinds: ['import', 'adopt', 'release_home'],
    ignored: Object.fromEntries(printableTexts.map((text) => [text, 3])),
    interfaces: [{ name: first.slice(0, 16), ip: '10.0.0.1', prefixLength: 24, mtu: 1500 }],
    bootPrograms: printableTexts.map((text) => ({
      set: 'ipxe',
      file: text,
      arch: 'any' as const,
      kind: next(),
      version: next(),
      sizeBytes: 1,
      sha256: '0'.repeat(64),
      signedBy: [next()],
    })),
  }
}

function must({ status, body }: { status: number; body: unknown }): void {
  if (status !== 200) throw new Error(`the API answered ${status}: ${JSON.stringify(body)}`)
}

/** Plants a version that is being made, and the edge's message about the job. */
async function plantStoreJob({ mutate }: Ground, edge: EdgeClient, vdiskId: string): Promise<void> {
  const { id, jobIds } = await mutate<{ id: string; jobIds: string[] }>('version.import', {
    vdiskId,
    edgeId: edge.edgeId,
    sourcePath: 'imports/<script>hacked=1',
    commandLine: '',
    note: first,
  })
  const store = { id: randomUUID(), publicKey: Buffer.alloc(32).toString('base64'), format: 1 }
  const job = { id: jobIds[0], state: 'running', progressBytes: 1, totalBytes: 2 }
  const message = hostileTexts['an element that fails']
  const bootProfiles = printableTexts.slice(0, 9).map((text) => ({
    hardware: text,
    boots: 1,
    readAheadBytes: 4096,
    units: 1,
  }))
  const sizes = { ownBytes: 1, sharedBytes: 1, reclaimableBytes: 1 }
  const version = { versionId: id, state: 'importing', ...sizes, bootProfiles }
  const images = printableTexts.map((name) => ({
    versionId: randomUUID(),
    state: 'present',
    ...sizes,
    root: Buffer.alloc(32, 1).toString('base64'),
    image: { name, sizeBytes: 512, createdUnixMs: 0, hasKernel: true },
  }))
  for (const said of [
    { jobs: [{ ...job, message }] },
    { jobs: [], inventory: { scan: 1, isLast: true, versions: [version, ...images] } },
  ]) {
    const body = JSON.stringify({ store, ...said })
    must(await edge.send({ method: 'POST', path: '/edge/v1/store', body }))
  }
}

/** Plants two edges, one of which keeps a device's writes and reports why it does not release them. */
async function plantHome({ url, rows, mutate, joinTokens }: Ground, one: EdgeClient): Promise<void> {
  const two = new EdgeClient(url)
  const { status, body } = await two.enrol(joinTokens[1], {
    hostname: hostileTexts['an element of a picture'],
  })
  if (status !== 201) throw new Error(`enrolment answered ${status}: ${JSON.stringify(body)}`)
  two.edgeId = String(body?.edgeId)
  const kept = { class: 'private', limitBytes: null, full: 'stop' }
  await mutate('vdisk.updateWriteCache', { vdiskId: rows.vdiskId, revision: 1, ...kept })
  const [deviceId = ''] = rows.deviceIds
  const { payload } = (await two.state('0.0', 0)).body as unknown as StateEnvelope
  const { devices, homeEdges = [] } = desiredState.parse(JSON.parse(payload))
  const index = devices.find(({ id }) => id === deviceId)?.home ?? -1
  const [home, other] = homeEdges[index]?.id === two.edgeId ? [two, one] : [one, two]
  const { jobId } = await mutate<{ jobId: string }>('device.moveHome', {
    deviceId,
    edgeId: other.edgeId,
    giveUp: false,
  })
  const message = hostileTexts['an element that fails']
  const jobs = [{ id: jobId, state: 'failed', progressBytes: 0, totalBytes: 0, message }]
  must(await home.send({ method: 'POST', path: '/edge/v1/store', body: JSON.stringify({ jobs }) }))
}

async function plantByPeople({ rows, mutate }: Ground) {
  const { farmId, siteId, collectionId } = rows
  const next = texts()
  await mutate('organization.rename', { name: first, revision: 1 })
  const create = async (path: string, input: object) => (await mutate<{ id: string }>(path, input)).id
  const siteIds: string[] = []
  for (const text of printableTexts) {
    siteIds.push(await create('site.create', { farmId, name: text, timeZone: 'UTC' }))
    await create('collection.create', { siteId, name: text })
    await create('vdisk.create', { farmId, name: text, note: next() })
    const removedId = await create('store.create', { farmId, name: text })
    await mutate('store.remove', { storeId: removedId })
  }
  await create('farm.create', { name: next() })
  await create('store.create', { farmId, name: next(), note: next() })
  const vdiskId = await create('vdisk.create', { farmId, name: 'Of versions', note: next() })
  await create('vdisk.registerVersion', {
    vdiskId,
    diskPath: 'a/<script>hacked=1',
    sizeBytes: 512,
    commandLine: `quiet x=${first}`,
    note: next(),
    labels: [hostileTexts['an element'], hostileTexts['an element that fails']],
  })
  const entries = printableTexts.map((title) => ({ title, starts: { kind: 'local_disk' } })).slice(0, 16)
  const menu = { farmId, name: next(), timeoutMs: 10_000, defaultEntry: 0, entries }
  const menuId = await create('bootMenu.create', menu)
  await mutate('collection.setBootMenu', { collectionId, menuId })
  const [deviceId, otherId] = rows.deviceIds
  await mutate('device.update', {
    deviceId,
    revision: 1,
    tags: printableTexts.filter((text) => !/[,;]/.test(text)),
    personality: Object.fromEntries(printableTexts.map((text, index) => [`NAME_${index}`, text])),
  })
  const scheduleId = await create('schedule.create', {
    farmId,
    siteId: null,
    name: first,
    power: 'wake_on_lan',
    ratePerMinute: 10,
    timeZone: 'UTC',
    when: { kind: 'cron', expression: '30 6 * * 1-5' },
    targets: [{ kind: 'collection', collectionId }],
  })
  const webhook = { name: first, url: 'https://hooks.example/<script>', events: ['boot.failed'] }
  const webhookId = await create('webhook.create', webhook)
  await create('apiKey.create', { name: first, role: 'viewer' })
  const serviceAccountId = await create('serviceAccount.create', { name: first, role: 'viewer', scope: {} })
  await create('apiKey.create', { name: first, role: 'viewer', serviceAccountId })
  const { runId } = await mutate<{ runId: string }>('schedule.runNow', { scheduleId })
  await mutate('device.remove', { deviceId: otherId })
  return { menuId, scheduleId, runId, vdiskId, webhookId, serviceAccountId, siteIds }
}

/** Wherever it is taken. Throws at a refusal that is none of the text. @returns the sites with such names */
async function plantBending({ rows, mutate }: Ground): Promise<string[]> {
  const { farmId, siteId, collectionId } = rows
  const siteIds: string[] = []
  const attempt = (path: string, input: object) =>
    mutate<{ id: string }>(path, input).catch((error: unknown) => {
      if (!(error instanceof Error && /answered 400:/.test(error.message))) throw error
      return null
    })
  const menu = { farmId, timeoutMs: 10_000, defaultEntry: 0 }
  const localDisk = { kind: 'local_disk' }
  const schedule = { farmId, siteId: null, power: 'wake_on_lan', ratePerMinute: 10, timeZone: 'UTC' }
  const when = { kind: 'cron', expression: '30 6 * * 1-5' }
  const [, , thirdId] = rows.deviceIds
  for (const [index, text] of Object.values(bendingTexts).entries()) {
    await attempt('vdisk.create', { farmId, name: text, note: text })
    await attempt('vdisk.create', { farmId, name: `Bent ${index}`, note: text })
    await attempt('farm.create', { name: text })
    const site = await attempt('site.create', { farmId, name: text, timeZone: 'UTC' })
    if (site) siteIds.push(site.id)
    await attempt('store.create', { farmId, name: text, note: text })
    await attempt('collection.create', { siteId, name: text })
    await attempt('bootMenu.create', {
      ...menu,
      name: text,
      entries: [{ title: 'Local disk', starts: localDisk }],
    })
    await attempt('bootMenu.create', {
      ...menu,
      name: `Bent ${index}`,
      entries: [{ title: text, starts: localDisk }],
    })
    await attempt('webhook.create', {
      name: text,
      url: 'https://hooks.example/',
      events: ['boot.failed'],
    })
    await attempt('webhook.create', {
      name: `Bent ${index}`,
      url: `https://hooks.example/${text}`,
      events: ['boot.failed'],
    })
    await attempt('apiKey.create', { name: text, role: 'viewer' })
    await attempt('serviceAccount.create', { name: text, role: 'viewer', scope: {} })
    await attempt('schedule.create', {
      ...schedule,
      name: text,
      when,
      targets: [{ kind: 'collection', collectionId }],
    })
    await attempt('schedule.create', {
      ...schedule,
      name: `Bent ${index}`,
      when,
      targets: [{ kind: 'tag', tag: text }],
    })
    await attempt('device.changeMany', { deviceIds: [thirdId], addTags: [text] })
  }
  return siteIds
}

const sitesPerWave = 5

/** Starts an experiment with a hostile name, whose device never boots. */
async function plantExperiment({ rows, mutate }: Ground): Promise<string> {
  const { siteId, deviceIds } = rows
  const factors = [{ setting: 'codec', values: ['off'] }]
  const plan = { factors, deviceIds: deviceIds.slice(-1), repetitions: 1, atOnce: 1 }
  const name = hostileTexts['an element']
  return (await mutate<{ id: string }>('experiment.create', { siteId, name, ...plan })).id
}

/** Plants a rollout that pauses since an edge gives up the release, for a cause that no page knows. */
async function plantRollout(ground: Ground, edge: EdgeClient, siteIds: string[]): Promise<string> {
  const { rows, now, release, mutate, advanceRollouts } = ground
  const { farmId, siteId } = rows
  // The first by name, with which pages open that offer the farms.
  await mutate('farm.update', { farmId, revision: 1, name: `!0${hostileTexts['an element that fails']}` })
  await mutate('site.update', { siteId, revision: 1, name: `!0${hostileTexts['an element']}` })
  const waves = [[siteId]]
  for (let index = 0; index < siteIds.length; index += sitesPerWave)
    waves.push(siteIds.slice(index, index + sitesPerWave))
  const rollout = { farmId, version: release, waves, byHand: true, healthyMinutes: 60 }
  const { id } = await mutate<{ id: string }>('rollout.create', rollout)
  await advanceRollouts?.()
  const order = await orderFor(edge)
  must(await edge.heartbeat({ ...hostileHeartbeat(now), update: { ...order, state: 'failed', cause: hostileCause } }))
  await advanceRollouts?.()
  return id
}

/** An edge asks again after this long, as it does in service. */
const stateWaitMs = 20_000
const stateAnswersMax = 10

/** Asks for the edge's state until a release is ordered for it. */
async function orderFor(edge: EdgeClient): Promise<NonNullable<DesiredState['release']>> {
  let after = '0.0'
  for (let answers = 0; answers < stateAnswersMax; answers += 1) {
    const { body } = await edge.state(after, stateWaitMs)
    if (!body) continue
    const { release, incarnation, counter } = desiredState.parse(JSON.parse((body as unknown as StateEnvelope).payload))
    if (release) return release
    after = `${incarnation}.${counter}`
  }
  throw new Error('no release was ordered for the edge')
}
