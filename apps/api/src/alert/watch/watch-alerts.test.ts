import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { BootReport } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import { bootWith } from '../../../test/edge-client.ts'
import { runProgram } from '../../../test/run-program.ts'
import { useTestSite } from '../../../test/test-site.ts'
import { signInAs } from '../../../test/test-tenant.ts'
import type { Mail } from '../../rules/mail.ts'
import { dropOldAlerts } from '../drop-old-alerts.ts'
import type { AlertView, OpenCausesView } from '../schema.ts'
import { watchAlerts } from './watch-alerts.ts'

const site = useTestSite('owner')
const minuteMs = 60_000
const dayMs = 86_400_000
const start = new Date('2026-11-20T12:10:00Z')
let devices = 0

beforeEach(async () => {
  site().api.clock.now = new Date(start)
  site().api.mails.length = 0
  devices = 0
  // An edge that is heard.
  expect((await site().edge.heartbeat({})).status).toBe(200)
})

const advance = (minutes: number) => site().api.clock.advance(minutes * minuteMs)
const context = () => ({
  db: site().api.serverDb,
  clock: site().api.clock.read,
  keepMail: async (mail: Mail) => void site().api.mails.push(mail),
  webUrl: 'https://boot.example',
})
const run = () => watchAlerts(context())
const list = async (input: object = {}) => (await site().query<{ items: AlertView[] }>('alert.list', input)).items
const events = async () => {
  const { items } = await site().query<{ items: { type: string; data: Record<string, unknown> }[] }>('event.list', {
    types: ['alert.opened', 'alert.closed'],
    sort: 'number',
  })
  return items.map(({ type, data }) => [type, data.title])
}

const won = { kind: 'failed', phase: 'dhcp', cause: 'other_offer_won', text: 'click http://evil.example' } as const

/** Each of another device that nobody registered, unless `of` says whose they are. */
async function boot(count: number, changes: Partial<BootReport> = {}, of?: string[]) {
  const boots = Array.from({ length: count }, (_, index) => {
    devices += 1
    const mac = of?.[index % of.length] ?? `02:aa:00:00:${hex(devices >> 8)}:${hex(devices & 255)}`
    const startedUnixMs = site().api.clock.now.getTime() - minuteMs + index
    return bootWith({ id: randomUUID(), mac, startedUnixMs, ...changes })
  })
  await site().report(...boots)
}
const hex = (byte: number) => byte.toString(16).padStart(2, '0')

test('failures of one cause are one alert, which grows, is acknowledged, and closes by itself', async () => {
  await boot(60)
  await boot(4, { outcome: won })
  await run()
  expect(await list()).toEqual([])
  await boot(34, { outcome: won })
  await run()
  const [alert] = await list()
  expect(alert).toMatchObject({
    kind: 'failures',
    siteId: site().tenant.siteId,
    cause: 'other_offer_won',
    bootCount: 38,
    firstAt: '2026-11-20T12:09:00.000Z',
    closedAt: null,
    objective: null,
    failures: { minutes: 15, boots: 38, devices: 38, placeBoots: 98 },
  })
  const title = (count: number) =>
    `${count} boots of site ${alert?.siteName}: The device accepted another DHCP server's boot offer and sent no further requests to this edge.`
  expect(alert?.title).toBe(title(38))
  expect(await site().query('alert.openCount')).toEqual({ count: 1, unacknowledged: 1 })
  const input = { alertId: alert?.id, acknowledged: true }
  expect(await site().mutate('alert.acknowledge', input)).toMatchObject({ acknowledgedByName: 'A owner' })
  expect(await site().query('alert.openCount')).toEqual({ count: 1, unacknowledged: 0 })
  advance(20)
  await boot(12, { outcome: won })
  await Promise.all([run(), run()])
  expect(await list()).toMatchObject([{ id: alert?.id, bootCount: 50, failures: { boots: 12 } }])
  advance(10)
  await boot(30)
  await run()
  expect(await list({ state: 'open' })).toMatchObject([{ bootCount: 50 }])
  advance(10)
  await boot(30)
  await run()
  expect(await list({ state: 'open' })).toEqual([])
  const [closed] = await list({ state: 'closed' })
  expect(closed).toMatchObject({ id: alert?.id, bootCount: 50, closedAt: site().api.clock.now.toISOString() })
  expect(await events()).toEqual([
    ['alert.opened', title(38)],
    ['alert.closed', title(50)],
  ])
  const boots = new URL(closed?.boots ?? '', 'https://boot.example').searchParams
  expect(Object.fromEntries(boots)).toEqual({
    site: site().tenant.siteId,
    cause: 'other_offer_won',
    since: closed?.firstAt,
    until: new Date(Date.parse(closed?.lastAt ?? '') + 1).toISOString(),
  })
})

test('a collection that fails is named, its boots are counted apart, and causes are summed over all places', async () => {
  const { siteId, collectionId, organizationId } = site().tenant
  const macs = Array.from({ length: 12 }, (_, index) => `02:cc:00:00:00:${hex(index)}`)
  const of = { organizationId, siteId, collectionId, deviceType: 'production' as const }
  await site().api.db.device.createMany({ data: macs.map((mac) => ({ ...of, mac, name: `room-${mac}` })) })
  for (let batch = 0; batch < 3; batch += 1) await boot(100)
  await boot(12, { outcome: won }, macs)
  await run()
  const [alert] = await list()
  expect(await list()).toMatchObject([
    { kind: 'failures', siteId, collectionId, bootCount: 12, failures: { boots: 12, devices: 12, placeBoots: 12 } },
  ])
  expect(alert?.title).toMatch(/^12 boots of collection .+ of site .+: The device accepted another DHCP server/)
  expect(new URL(alert?.boots ?? '', 'https://boot.example').searchParams.get('collection')).toBe(collectionId)
  // Others of the site begin to fail, too: a second alert, which the first one's boots alone would not have opened.
  await boot(40, { outcome: won })
  await run()
  expect((await list()).map((one) => [one.collectionId, one.bootCount])).toEqual([
    [null, 52],
    [collectionId, 12],
  ])
  const { causes } = await site().query<OpenCausesView>('alert.openCauses')
  expect(causes).toMatchObject([
    { cause: 'other_offer_won', bootCount: 52, places: [{ collectionId: null }, { alertId: alert?.id }] },
  ])
  advance(50)
  await boot(5)
  await run()
  expect(await list({ state: 'open' })).toEqual([])
  // What is usual of the collection is now known: 12 of its part of the boots.
  advance(60)
  await boot(6, { outcome: won }, macs)
  await boot(20)
  await run()
  expect(await list({ state: 'open' })).toMatchObject([{ collectionId }])
})

test('what usually fails is no alert, and neither is one device that fails again and again', async () => {
  await boot(60)
  await boot(60, { outcome: won }, [site().mac])
  await run()
  expect(await list()).toEqual([])
  advance(60)
  // Of 120 boots in the hour before, 60 failed: twice as many are no news.
  await boot(2)
  await run()
  advance(120)
  await boot(20)
  await boot(18, { outcome: won })
  await run()
  expect(await list()).toEqual([])
})

test('boots that fall silent are grouped, generated ones are left out', async () => {
  const silent = { kind: 'silent', phase: 'stage2' } as const
  await boot(10, { outcome: silent, generated: true })
  await run()
  expect(await list()).toEqual([])
  await boot(10, { outcome: silent })
  await run()
  expect(await list()).toMatchObject([
    { cause: 'silent', bootCount: 10, boots: expect.stringContaining('outcome=silent') },
  ])
})

const objective = { percent: 95, seconds: 30, days: 30 }

test('an objective that boots miss is an alert; it closes once they are ready in time', async () => {
  const { collectionId, macs } = site().tenant
  const set = { collectionId, objective }
  await site().mutate('objective.setOfCollection', set)
  const late = {
    phases: bootWith({ id: randomUUID(), mac: '' }).phases.map((one) => ({ ...one, durationUs: 40_000_000 })),
  }
  await boot(20, late, macs)
  await run()
  // Their time has just begun to be over: reports may be late.
  expect(await list()).toEqual([])
  advance(1)
  // Boots of other devices of the site are another matter.
  await boot(30)
  await run()
  const [alert] = await list({ collectionId })
  expect(alert).toMatchObject({
    kind: 'objective',
    collectionId,
    bootCount: 20,
    objective: {
      window: '1h',
      boots: 20,
      missed: 20,
      burnRate: 20,
      burnLimit: 14.4,
      percent: 95,
      seconds: 30,
      days: 30,
    },
  })
  expect(alert?.title).toMatch(/^Only 0 % of the boots of collection .* were ready within 30 s in the last hour\./)
  expect(await site().query('objective.ofCollection', { collectionId })).toMatchObject({
    objective,
    boots: 20,
    missed: 20,
    budgetLeftPercent: -1900,
  })
  advance(10)
  await run()
  expect(await list({ state: 'open' })).toHaveLength(1)
  await boot(30, {}, macs)
  advance(2)
  await run()
  // Two of five boots missed it: the faster rule is over, the slower one is not.
  expect(await list({ state: 'open' })).toMatchObject([{ objective: { window: '6h', boots: 50, missed: 20 } }])
  advance(40)
  await boot(60, {}, macs)
  advance(2)
  await run()
  expect(await list({ state: 'open' })).toEqual([])
  expect(await site().query('objective.ofCollection', { collectionId })).toMatchObject({ boots: 110, missed: 20 })
})

test('boots of an edge that is offline miss nothing, and those without a result do once their edge is heard', async () => {
  const { siteId } = site().tenant
  await site().mutate('objective.setOfSite', { siteId, objective })
  const { outcome: _, ...booting } = bootWith({ id: randomUUID(), mac: '' })
  const reports = Array.from({ length: 12 }, (_unused, index) => ({
    ...booting,
    id: randomUUID(),
    mac: `02:ab:00:00:00:${hex(index)}`,
    startedUnixMs: start.getTime() - minuteMs,
  }))
  await site().report(...(reports as BootReport[]))
  await site().api.db.edge.updateMany({ data: { heartbeatAt: new Date(start.getTime() - minuteMs) } })
  advance(1)
  await run()
  expect(await list()).toEqual([])
  await site().api.db.edge.updateMany({ data: { heartbeatAt: site().api.clock.now } })
  await run()
  expect(await list()).toMatchObject([{ kind: 'objective', collectionId: null, bootCount: 12 }])
  await site().mutate('objective.setOfSite', { siteId, objective: null })
  await run()
  expect(await list({ state: 'open' })).toEqual([])
})

test('another time starts a new count, and objectives are bounded', async () => {
  const { siteId } = site().tenant
  const set = (seconds: number, percent = 95) =>
    site().tryMutation('objective.setOfSite', { siteId, objective: { percent, seconds, days: 7 } })
  await set(30)
  await boot(20)
  advance(2)
  await run()
  expect(await site().query('objective.ofSite', { siteId })).toMatchObject({ boots: 20, budgetLeftPercent: 100 })
  await set(30, 99.5)
  expect(await site().query('objective.ofSite', { siteId })).toMatchObject({ boots: 20 })
  await set(20)
  expect(await site().query('objective.ofSite', { siteId })).toMatchObject({ boots: 0, budgetLeftPercent: null })
  for (const percent of [100, 49, 95.55]) expect((await set(30, percent)).status).toBe(400)
})

test('mails go to members who subscribed and see the alert, after quiet hours as one', async () => {
  const { organizationId } = site().tenant
  const other = await signInAs(site().api, organizationId, 'viewer')
  const zone = { timeZone: 'Europe/Berlin' }
  const subscription = { ...zone, quietHours: null }
  const quiet = { ...zone, quietHours: { from: '12:30', to: '14:10' } }
  const { email } = await site().mutate<{ email: string }>('alert.subscribe', { subscription })
  expect((await site().tryMutation('alert.subscribe', { subscription: quiet }, other)).status).toBe(200)
  advance(1)
  await boot(10, { outcome: won })
  await run()
  await run()
  const mails = () => site().api.mails
  // It is 13:11 in Berlin.
  expect(mails().map(({ to }) => to)).toEqual([email])
  expect(mails()[0]?.subject).toMatch(/^10 boots of site /)
  expect(mails()[0]?.text).toContain('https://boot.example/boots?site=')
  expect(mails()[0]?.text).toContain('Opened: 20 Nov 2026, 13:11 (Europe/Berlin).')
  expect(mails()[0]?.text).not.toContain('evil')
  advance(20)
  await boot(10, { outcome: { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout' } })
  await run()
  expect(mails()).toHaveLength(2)
  advance(50)
  await run()
  const held = mails().find(({ to }) => to !== email)
  expect(held?.subject).toMatch(/^2 alerts of /)
  expect(held?.text.match(/Closed: /g)).toHaveLength(2)
  const sent = mails().length
  await run()
  expect(mails()).toHaveLength(sent)
  await site().mutate('alert.subscribe', { subscription: null })
  expect(await site().query('alert.subscription')).toMatchObject({ email, subscription: null })
})

test('a process that is killed while it mails loses no mail and sends none twice', async () => {
  const { organizationId } = site().tenant
  const subscription = { timeZone: 'Europe/Berlin', quietHours: null }
  await site().mutate('alert.subscribe', { subscription })
  advance(1)
  await boot(10, { outcome: won })
  await watchAlerts({ ...context(), keepMail: () => Promise.reject(new Error('no mail here')) }).catch(() => undefined)
  const url = site().api.serverDatabaseUrl
  const program = fileURLToPath(new URL('../../../test/programs/mail-alerts-and-end.ts', import.meta.url))
  const endIn = async (moment: 'before' | 'after') => {
    const args = [program, url, organizationId, site().api.clock.now.toISOString(), moment]
    expect(await runProgram({ program: process.execPath, args })).toEqual({ code: null, output: '' })
    const [row] = await site().api.db.$queryRaw<{ count: number }[]>`
      select count(*)::int as count from pgboss.job where name = 'mail'`
    return row?.count
  }
  expect(await endIn('before')).toBe(0)
  expect(await endIn('after')).toBe(1)
  expect(await endIn('after')).toBe(1)
})

test('another organization sees nothing, and a viewer acknowledges nothing', async () => {
  const { organizationId } = site().tenant
  await boot(10, { outcome: won })
  await run()
  const [alert] = await list()
  const other = await site().other('owner')
  expect((await other.query<{ items: unknown[] }>('alert.list', {})).items).toEqual([])
  const acknowledge = { alertId: alert?.id, acknowledged: true }
  expect((await other.tryMutation('alert.acknowledge', acknowledge)).status).toBe(404)
  const viewer = await signInAs(site().api, organizationId, 'viewer')
  expect((await site().tryMutation('alert.acknowledge', acknowledge, viewer)).status).toBe(403)
})

test('closed alerts are dropped after 90 days, and counts when nothing reads them', async () => {
  await boot(10, { outcome: won })
  await run()
  advance(40)
  await run()
  const count = async () => ({
    alerts: (await list()).length,
    hours: await site().api.db.causeHour.count({ where: { organizationId: site().tenant.organizationId } }),
  })
  await dropOldAlerts(context())
  expect(await count()).toEqual({ alerts: 1, hours: 1 })
  site().api.clock.advance(89 * dayMs)
  await dropOldAlerts(context())
  expect(await count()).toEqual({ alerts: 1, hours: 0 })
  site().api.clock.advance(2 * dayMs)
  await dropOldAlerts(context())
  expect(await count()).toEqual({ alerts: 0, hours: 0 })
})
