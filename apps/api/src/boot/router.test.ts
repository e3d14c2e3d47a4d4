import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../test/edge-client.ts'
import { startTestApi } from '../../test/test-api.ts'
import { callProcedure, openSubscription } from '../../test/test-client.ts'
import { TestSite, useTestSite } from '../../test/test-site.ts'
import { makeJoinToken, signInAs } from '../../test/test-tenant.ts'
import type { FarmOverview } from '../farm/schema.ts'
import type { BootChange, BootSummary } from './schema.ts'

interface Page<T> {
  items: T[]
  nextCursor: string | null
}

const site = useTestSite('viewer')
const report = (...boots: BootReport[]) => site().report(...boots)

/** A boot that began so many minutes before the test clock's now. */
function bootAt(minutesAgo: number, changes: Partial<BootReport> = {}): BootReport {
  const startedUnixMs = site().api.clock.now.getTime() - minutesAgo * 60_000
  return bootWith({ id: randomUUID(), mac: site().mac, startedUnixMs, ...changes })
}

const list = (input: object) => site().query<Page<BootSummary>>('boot.list', input)
const idsOf = (page: Page<BootSummary>) => page.items.map(({ id }) => id)

describe('boot.list', () => {
  test('goes through all boots once, newest first, also where they began at the same instant', async () => {
    const boots = [...Array.from({ length: 5 }, () => bootAt(10)), bootAt(5), bootAt(20)]
    await report(...boots)
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const page: Page<BootSummary> = await list({ limit: 2, cursor })
      seen.push(...idsOf(page))
      cursor = page.nextCursor
    } while (cursor)
    expect(seen).toHaveLength(7)
    expect(new Set(seen)).toEqual(new Set(boots.map(({ id }) => id)))
    expect([seen[0], seen[6]]).toEqual([boots[5]?.id, boots[6]?.id])
  })

  test('filters by outcome, device, site, origin and begin', async () => {
    const { api, tenant, edge } = site()
    const { outcome: _none, ...goingOn } = bootAt(1)
    const failed = bootAt(2, { outcome: { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout' } })
    const real = bootAt(3, { simulated: false, mac: tenant.macs[1] ?? '' })
    const generated = bootAt(4, { generated: true })
    await report(goingOn, failed, real, generated)
    expect(idsOf(await list({ outcome: 'booting' }))).toEqual([goingOn.id])
    expect(idsOf(await list({ outcome: 'failed' }))).toEqual([failed.id])
    expect(idsOf(await list({ deviceId: tenant.deviceIds[1] }))).toEqual([real.id])
    expect(idsOf(await list({ origin: 'device' }))).toEqual([real.id])
    expect(idsOf(await list({ origin: 'simulated' }))).toEqual([goingOn.id, failed.id])
    expect(idsOf(await list({ origin: 'generated' }))).toEqual([generated.id])
    expect(idsOf(await list({ since: new Date(api.clock.now.getTime() - 150_000).toISOString() }))).toEqual([
      goingOn.id,
      failed.id,
    ])
    expect((await list({ siteId: tenant.siteId, edgeId: edge.edgeId })).items).toHaveLength(4)
    expect((await list({ siteId: randomUUID() })).items).toHaveLength(0)
  })

  test.each([{ limit: 0 }, { limit: 101 }, { cursor: 'made up' }, { outcome: 'perfect' }, { since: 'yesterday' }])(
    'refuses %j',
    async (input) => {
      const answer = await site().tryQuery('boot.list', input)
      expect([answer.status, answer.code]).toEqual([400, 'invalid'])
    },
  )
})

describe('farm.overview', () => {
  test('counts boots of the last day and of each of 30 days, and their times', async () => {
    const seconds = (count: number) => bootAt(60, { phases: [{ ...phase, startUs: 0, durationUs: count * 1e6 }] })
    const [phase] = bootAt(0).phases as [BootReport['phases'][number]]
    const minutesOfDay = 24 * 60
    await report(
      ...[1, 2, 3, 4, 5].map(seconds),
      bootAt(60, { outcome: { kind: 'silent', phase: 'loader' } }),
      bootAt(60, { outcome: { kind: 'silent', phase: 'firmware' } }),
      // Neither ready nor failed.
      bootAt(60, { outcome: { kind: 'local_disk' } }),
      bootAt(60, { outcome: { kind: 'superseded' } }),
      bootAt(3 * minutesOfDay, { generated: true }),
      bootAt(40 * minutesOfDay),
    )
    const overview = await site().query<FarmOverview>('farm.overview', { farmId: site().tenant.farmId })
    expect(overview.last24Hours).toEqual({
      readyCount: 5,
      since: '2026-11-19T13:00:00.000Z',
      failedCount: 1,
      noResponseCount: 1,
      generatedCount: 0,
      p50Us: expect.any(Number),
      p95Us: expect.any(Number),
    })
    // Quantiles come from sketches, which are right within 1.6 %.
    expect((overview.last24Hours.p50Us ?? 0) / 3e6).toBeCloseTo(1, 1.5)
    expect((overview.last24Hours.p95Us ?? 0) / 5e6).toBeCloseTo(1, 1.5)
    expect(overview.byDay).toHaveLength(30)
    expect(overview.byDay.at(-1)).toMatchObject({ day: '2026-11-20', readyCount: 5, failedCount: 1 })
    expect(overview.byDay.at(-4)).toMatchObject({ day: '2026-11-17', readyCount: 1, generatedCount: 1 })
    expect(overview.byDay.at(-2)).toMatchObject({ readyCount: 0, p50Us: null })
    expect(overview.recentBoots).toHaveLength(10)
    expect(overview.counts).toMatchObject({ sites: 1, edges: 1, edgesOnline: 0, devices: 6, vdisks: 1 })
  })
})

describe('boot.onChange', () => {
  const open = (lastEventId?: string) =>
    openSubscription(site().api, {
      path: 'boot.onChange',
      cookie: site().cookie,
      ...(lastEventId ? { lastEventId } : {}),
    })
  const openPage = (bootId: string) =>
    openSubscription(site().api, { path: 'boot.onChange', cookie: site().cookie, input: { bootId } })
  const bootIdOf = (data: unknown) => {
    const change = data as BootChange
    return change.kind === 'boot' ? change.boot.id : change.kind
  }

  test('continues after the newest change of an earlier look, with all that was applied since and nothing before', async () => {
    await report(bootAt(5))
    const { id } = await site().query<{ id: string }>('boot.newestChange', {})
    expect(id).toMatch(/^[1-9]/)
    const between = bootAt(1)
    await report(between)
    const events = await open(id)
    expect(bootIdOf((await events.next()).data)).toBe('synced')
    expect(bootIdOf((await events.next()).data)).toBe(between.id)
    events.close()
  })

  test('tells a role of one place no number, which would count the boots beside it', async () => {
    const { api, tenant } = site()
    const { organizationId, collectionId } = tenant
    const cookie = await signInAs(api, organizationId, 'viewer')
    const { id } = await api.db.roleGrant.findFirstOrThrow({ where: { organizationId }, orderBy: { id: 'desc' } })
    await api.db.roleGrant.update({ where: { organizationId_id: { organizationId, id } }, data: { collectionId } })
    await report(bootAt(0))
    const { status, text } = await callProcedure(api, { path: 'boot.newestChange', type: 'query', cookie })
    expect([status, JSON.parse(text)]).toMatchObject([200, { result: { data: { id: null } } }])
  })

  test('sends synced first, then each change as it is applied', async () => {
    await report(bootAt(5))
    const events = await open()
    expect(bootIdOf((await events.next()).data)).toBe('synced')
    const boot = bootAt(1)
    const { outcome: _none, ...goingOn } = boot
    await report(goingOn)
    expect((await events.next()).data).toMatchObject({ kind: 'boot', boot: { id: boot.id, outcome: null } })
    await report({ ...boot, revision: 2 })
    expect((await events.next()).data).toMatchObject({
      kind: 'boot',
      boot: { id: boot.id, outcome: 'ready' },
    })
    events.close()
  })

  test('brings after a reconnect what changed meanwhile, each boot once in its newest state', async () => {
    const before = await open()
    const known = bootAt(3)
    await before.next()
    await report(known)
    const last = await before.next()
    before.close()
    const [first, second] = [bootAt(2), bootAt(1)]
    await report(first, second)
    await report({ ...first, revision: 2 })
    const after = await open(last.id)
    expect(bootIdOf((await after.next()).data)).toBe('synced')
    const events = [await after.next(), await after.next()]
    expect(events.map(({ data }) => bootIdOf(data))).toEqual([second.id, first.id])
    await report(bootAt(0))
    expect(bootIdOf((await after.next()).data)).not.toBe(known.id)
    after.close()
  })

  test('sends the boot of an open page whole, first and after each of its changes', async () => {
    const boot = bootAt(1)
    const { outcome: _none, ...booting } = boot
    await report(booting)
    const events = await openPage(boot.id)
    expect(bootIdOf((await events.next()).data)).toBe('synced')
    const detail = async () => ({ kind: 'detail', boot: await site().query('boot.get', { bootId: boot.id }) })
    const first = (await events.next()).data
    expect(first).toEqual(await detail())
    expect(first).toMatchObject({ boot: { outcome: null } })
    const other = bootAt(0)
    await report(other)
    expect(bootIdOf((await events.next()).data)).toBe(other.id)
    await report({ ...boot, revision: 2 })
    expect((await events.next()).data).toMatchObject({ kind: 'boot', boot: { id: boot.id, outcome: 'ready' } })
    expect((await events.next()).data).toEqual(await detail())
    events.close()
  })

  test('answers an open page of another organization’s boot as one of a boot that does not exist', async () => {
    const other = await site().other('viewer')
    const foreign = bootWith({ id: randomUUID(), mac: other.mac })
    await other.report(foreign)
    for (const bootId of [foreign.id, randomUUID()]) {
      const events = await openPage(bootId)
      await events.next()
      expect((await events.next()).data).toEqual({ kind: 'withdrawn', bootId })
      events.close()
    }
  })

  test('never brings another organization’s boots', async () => {
    const other = await site().other('viewer')
    const events = await open()
    await events.next()
    await other.report(bootWith({ id: randomUUID(), mac: other.mac }))
    const own = bootAt(0)
    await report(own)
    expect(bootIdOf((await events.next()).data)).toBe(own.id)
    events.close()
  })

  test('misses none of many boots that edges report at once', async () => {
    const { api, tenant } = site()
    const edges = await Promise.all(
      [1, 2, 3, 4].map(async () => EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))),
    )
    const events = await open()
    await events.next()
    const boots = edges.map(() => Array.from({ length: 25 }, () => bootAt(1)))
    await Promise.all(
      edges.map(async (reporter, index) => {
        for (const [place, boot] of (boots[index] ?? []).entries())
          await reporter.reports(place + 1, bootReports(place + 1, [boot]))
      }),
    )
    const seen = new Set<string>()
    while (seen.size < 100) seen.add(bootIdOf((await events.next()).data))
    expect(seen).toEqual(new Set(boots.flat().map(({ id }) => id)))
    events.close()
  })

  test('ends before the first change after the role or the session has ended', async () => {
    const { api, tenant } = site()
    const { organizationId } = tenant
    const ends = {
      role: (userId: string) => api.db.roleGrant.deleteMany({ where: { organizationId, userId } }),
      session: (userId: string) => api.db.session.deleteMany({ where: { userId } }),
    }
    for (const end of Object.values(ends)) {
      const cookie = await signInAs(api, organizationId, 'viewer')
      const events = await openSubscription(api, { path: 'boot.onChange', cookie })
      await events.next()
      const { userId } = await api.db.roleGrant.findFirstOrThrow({ where: { organizationId }, orderBy: { id: 'desc' } })
      await end(userId)
      await report(bootAt(0))
      await expect(events.next()).rejects.toThrow('UNAUTHORIZED')
      events.close()
    }
  })

  test('shows a role that shrinks what it still holds for, and goes on past hidden changes', async () => {
    const { api, tenant } = site()
    const { organizationId, collectionId } = tenant
    const cookie = await signInAs(api, organizationId, 'viewer')
    const events = await openSubscription(api, { path: 'boot.onChange', cookie })
    await events.next()
    const { id } = await api.db.roleGrant.findFirstOrThrow({ where: { organizationId }, orderBy: { id: 'desc' } })
    await api.db.roleGrant.update({ where: { organizationId_id: { organizationId, id } }, data: { collectionId } })
    // Of a device that is registered nowhere, so that it is in no collection.
    const hidden = Array.from({ length: 120 }, () => bootAt(0, { mac: '02:bf:00:0a:0b:0c' }))
    const own = bootAt(0)
    await report(...hidden.slice(0, 60))
    await report(...hidden.slice(60))
    await report(own)
    expect(bootIdOf((await events.next()).data)).toBe(own.id)
    events.close()
  })

  test('is open ten times at once for one person, and once more when one is closed', async () => {
    const { api, cookie } = site()
    const all = await Promise.all(Array.from({ length: 10 }, () => open()))
    for (const events of all) await events.next()
    const ask = () => callProcedure(api, { path: 'boot.onChange', type: 'subscription', cookie })
    expect(await ask()).toMatchObject({ status: 429, code: 'rate_limited' })
    const other = await signInAs(api, site().tenant.organizationId, 'viewer')
    expect(await callProcedure(api, { path: 'boot.onChange', type: 'subscription', cookie: other })).toMatchObject({
      status: 200,
    })
    for (const events of all) events.close()
    await expect.poll(ask).toMatchObject({ status: 200 })
  })
})

test('a change is read once for all open pages of an organization, and their rights with it', async () => {
  const statements: string[] = []
  const api = await startTestApi({ onQuery: ({ text }) => statements.push(text) })
  const own = await TestSite.open(api, 'one-read', 'viewer')
  const cookies = await Promise.all([1, 2, 3, 4].map(() => signInAs(api, own.tenant.organizationId, 'viewer')))
  const pages = await Promise.all(
    cookies.flatMap((cookie) => [1, 2].map(() => openSubscription(api, { path: 'boot.onChange', cookie }))),
  )
  for (const page of pages) await page.next()
  statements.length = 0
  const boot = bootWith({ id: randomUUID(), mac: own.mac })
  await own.report(boot)
  for (const page of pages) expect((await page.next()).data).toMatchObject({ kind: 'boot', boot: { id: boot.id } })
  const count = (pattern: RegExp) => statements.filter((text) => pattern.test(text)).length
  expect(count(/"withdrawn_boot".*"change" >/)).toBe(1)
  expect(count(/grants_of\(user_id/)).toBe(1)
  for (const page of pages) page.close()
  await api.close()
})
