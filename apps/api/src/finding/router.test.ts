import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { PlacedSite } from '../../test/placed-site.ts'
import { useTestSite } from '../../test/test-site.ts'
import { checkFindings } from './check-findings.ts'
import type { FindingDetail, FindingView } from './schema.ts'
import { watchBoots } from './watch-boots.ts'

const site = useTestSite('operator')
const counts = { bytesIn: 0, bytesOut: 0, packetsIn: 0, packetsOut: 0, retries: 0, missingFragments: 0, reads: 0 }
const secondUs = 1_000_000
const start = new Date('2026-11-20T12:00:00Z')
let second: string
let made: number

beforeEach(async () => {
  site().api.clock.now = start
  second = await new PlacedSite(site()).makeVersion(2, site().tenant.versionId)
  made = 0
})

interface Streaming {
  versionId: string
  streamSeconds: number
  storageSeconds: number
}

/** The next boot, a minute after the one before; times vary a little. */
function bootOf(
  { versionId, streamSeconds, storageSeconds }: Streaming,
  changes: Partial<BootReport> = {},
): BootReport {
  const { tenant } = site()
  const vary = 1 + ((made * 7) % 11) / 500
  made += 1
  const streamUs = Math.round(streamSeconds * secondUs * vary)
  const phase = { ...counts, source: 'observed' as const }
  const sumUs = Math.round(storageSeconds * secondUs * vary)
  return bootWith({
    id: randomUUID(),
    mac: tenant.macs[made % tenant.macs.length] ?? '',
    startedUnixMs: start.getTime() - 10 * 86_400_000 + made * 60_000,
    vdiskId: tenant.vdiskId,
    versionId,
    phases: [
      { ...phase, name: 'dhcp', startUs: 0, durationUs: secondUs },
      { ...phase, name: 'stage2', startUs: secondUs, durationUs: streamUs },
    ],
    readTimes: { cold: { firstBucket: 14, counts: [200], maxUs: 16_000, sumUs } },
    ...changes,
  })
}

async function report(
  count: number,
  streaming: Streaming,
  changes: (index: number) => Partial<BootReport> = () => ({}),
) {
  for (let index = 0; index < count; index += 20)
    await site().report(
      ...Array.from({ length: Math.min(20, count - index) }, (_, more) => bootOf(streaming, changes(index + more))),
    )
  await watchBoots(platform())
}

const platform = () => ({ db: site().api.serverDb, clock: site().api.clock.read })
const first = () => ({ versionId: site().tenant.versionId, streamSeconds: 5, storageSeconds: 2 })
const slow = () => ({ versionId: second, streamSeconds: 8, storageSeconds: 4.9 })
const list = async (input: object = {}) => (await site().query<{ items: FindingView[] }>('finding.list', input)).items
const get = (findingId: string) => site().query<FindingDetail>('finding.get', { findingId })
const events = async () =>
  (
    await site().api.db.webhookEvent.findMany({
      where: { organizationId: site().tenant.organizationId, type: { startsWith: 'finding.' } },
      orderBy: { createdAt: 'asc' },
      select: { type: true },
    })
  ).map(({ type }) => type)

test('a version that streams more slowly is found and explained, once', async () => {
  await report(100, first())
  expect(await list()).toEqual([])
  await report(40, slow())
  const [finding, ...more] = await list({ state: 'current', versionId: second })
  expect(more).toEqual([])
  expect(finding).toMatchObject({
    kind: 'slower',
    factor: 'version',
    value: second,
    valueName: 'version 2',
    state: 'open',
    sentence: expect.stringMatching(
      /^Boots take 3\.\d s \(5\d %\) longer since version 2: OS disk streaming \+3\.\d s, of which storage \+2\.9 s\.$/,
    ),
    site: { id: site().tenant.siteId },
  })
  const { evidence } = await get(finding?.id ?? '')
  expect(evidence.before).toHaveLength(50)
  expect(evidence.after.length).toBeGreaterThanOrEqual(10)
  expect(evidence.phases.map(({ name }) => name)).toEqual(['dhcp', 'stage2'])
  const known = new Set([...evidence.before, ...evidence.after].map(({ bootId }) => bootId))
  expect(known.size).toBe(evidence.before.length + evidence.after.length)
  expect(await events()).toEqual(['finding.opened'])
  expect(await list({ versionId: site().tenant.versionId })).toEqual([])
})

test('boots count once, however often they are reported after their end', async () => {
  await report(100, first())
  const boots = Array.from({ length: 5 }, () => bootOf(slow()))
  for (let revision = 1; revision <= 10; revision += 1) {
    await site().report(...boots.map((boot) => ({ ...boot, revision: boot.revision + revision })))
    await watchBoots(platform())
  }
  expect(await list()).toEqual([])
})

test('boots without a change, and boots that never happened, are no finding', async () => {
  await report(160, first())
  await report(40, slow(), () => ({ generated: true }))
  expect(await list()).toEqual([])
})

test('a version whose boots fail is found with the phase and the cause', async () => {
  await report(100, first())
  const outcome = { kind: 'failed', phase: 'stage2', cause: 'root_not_found' } as const
  await report(40, { ...first(), versionId: second }, (index) => (index % 4 === 0 ? {} : { outcome }))
  const [finding] = await list()
  expect(finding).toMatchObject({ kind: 'failing', factor: 'version', valueName: 'version 2' })
  expect(finding?.sentence).toMatch(
    /boots failed since version 2, most of them in OS disk streaming; before, 0 of 50\.$/,
  )
  expect((await get(finding?.id ?? '')).evidence.failedCause).toBe('root_not_found')
})

async function found(): Promise<FindingView> {
  await report(100, first())
  await report(40, slow())
  const [finding] = await list()
  if (!finding) throw new Error('nothing was found')
  return finding
}

test('people acknowledge, mute and explain a finding, and the audit log keeps it', async () => {
  const { id: findingId, revision } = await found()
  const { organizationId } = site().tenant
  await site().mutate('finding.acknowledge', { findingId, revision })
  expect(await get(findingId)).toMatchObject({ state: 'acknowledged', stateAt: start.toISOString() })
  const stale = await site().tryMutation('finding.mute', { findingId, revision })
  expect(stale).toMatchObject({ status: 409, text: expect.stringContaining('it is acknowledged') })
  await site().mutate('finding.mute', { findingId, revision: revision + 1 })
  expect(await list({ state: 'current' })).toEqual([])
  await site().mutate('finding.unmute', { findingId, revision: revision + 2 })
  const again = await site().tryMutation('finding.unmute', { findingId, revision: revision + 3 })
  expect(again).toMatchObject({ status: 409, text: expect.stringContaining('is not muted') })
  const entries = await site().api.db.auditEntry.findMany({
    where: { organizationId, objectKind: 'finding' },
    orderBy: { id: 'asc' },
  })
  expect(entries.map(({ action, after }) => [action, (after as { state: string }).state])).toEqual([
    ['finding.acknowledge', 'acknowledged'],
    ['finding.mute', 'muted'],
    ['finding.unmute', 'open'],
  ])
  const auditEntryId = entries[0]?.id
  await site().mutate('finding.link', { findingId, revision: revision + 3, auditEntryId })
  expect(await get(findingId)).toMatchObject({ auditEntryId })
  const unknown = { findingId, revision: revision + 4, auditEntryId: randomUUID() }
  expect(await site().tryMutation('finding.link', unknown)).toMatchObject({
    status: 400,
    text: expect.stringContaining('no such entry'),
  })
})

test('a finding closes when boots are as before, and not sooner', async () => {
  const { id } = await found()
  await checkFindings(platform())
  expect((await get(id)).state).toBe('open')
  made += 11 * 1_440
  site().api.clock.advance(2 * 86_400_000)
  await report(24, first())
  await checkFindings(platform())
  const { state, revision } = await get(id)
  expect(state).toBe('closed')
  expect(await events()).toEqual(['finding.opened', 'finding.closed'])
  expect((await site().tryMutation('finding.mute', { findingId: id, revision })).status).toBe(409)
})

test('other organizations do not see it', async () => {
  const { id: findingId, revision } = await found()
  const other = await site().other('owner')
  expect((await other.tryQuery('finding.get', { findingId })).status).toBe(404)
  expect((await other.tryMutation('finding.mute', { findingId, revision })).status).toBe(404)
  expect((await other.query<{ items: unknown[] }>('finding.list', {})).items).toEqual([])
})
