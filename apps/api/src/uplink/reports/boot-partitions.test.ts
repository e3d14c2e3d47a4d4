import { randomUUID } from 'node:crypto'
import { createDb } from '@bootfarm/db'
import { createTestDatabase } from '@bootfarm/db/testing'
import { expect, test } from 'vitest'
import { bootWith, guestWith } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import { dropOldBoots, makeBootPartitions } from '../../boot/keep-boot-partitions.ts'
import type { BootDetail, BootSummary } from '../../boot/schema.ts'

const site = useTestSite('operator')
const dayMs = 86_400_000
const getBoot = (bootId: string) => site().query<BootDetail>('boot.get', { bootId })
const list = async (input: object = {}) =>
  (await site().query<{ items: BootSummary[] }>('boot.list', input)).items.map(({ id }) => id)
const contextOf = ({ api }: ReturnType<typeof site>) => ({ db: api.db, clock: api.clock.read })

async function partitions(parent: string): Promise<string[]> {
  const rows = await site().api.db.$queryRaw<{ name: string }[]>`
    select relname as name from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = ${parent}::regclass order by 1`
  return rows.map(({ name }) => name)
}

test('a report on a day without partitions makes them, two at once as well', async () => {
  const { api } = site()
  api.clock.advance(40 * dayMs)
  const second = await site().other('operator')
  const [a, b] = [randomUUID(), randomUUID()]
  await Promise.all([
    site().report(bootWith({ id: a, mac: site().mac })),
    second.report(bootWith({ id: b, mac: second.mac })),
  ])
  const day = api.clock.now.toISOString().slice(0, 10).replaceAll('-', '')
  expect(await partitions('boot')).toContain(`boot_${day}`)
  expect(await partitions('boot_detail')).toContain(`boot_detail_${day}`)
  expect(await list()).toEqual([a])
})

test('the job makes partitions ahead, and making them again changes nothing', async () => {
  const context = contextOf(site())
  await Promise.all([makeBootPartitions(context), makeBootPartitions(context)])
  const made = await partitions('boot')
  await makeBootPartitions(context)
  expect(await partitions('boot')).toEqual(made)
  const ahead = new Date(context.clock().getTime() + 3 * dayMs).toISOString().slice(0, 10)
  expect(made).toContain(`boot_${ahead.replaceAll('-', '')}`)
})

test('details are dropped before summaries, the page says so, and a late report of such a boot still counts', async () => {
  const { api } = site()
  const id = randomUUID()
  await site().report({ ...bootWith({ id, mac: site().mac, guest: guestWith() }) })
  expect(await getBoot(id)).toMatchObject({ detailGone: null, guest: { kernelStartUs: 1_200_000 } })
  api.clock.advance(31 * dayMs)
  await dropOldBoots(contextOf(site()), { summaryDays: 400, detailDays: 30 })
  const expected = { detailGone: { keptDays: 30 }, guest: null, totalUs: 3_000_000, deviceName: 'pc-01' }
  expect(await getBoot(id)).toMatchObject(expected)
  await site().report({ ...bootWith({ id, mac: site().mac }), revision: 2 })
  expect(await getBoot(id)).toMatchObject({ ...expected, revision: 2 })

  api.clock.advance(370 * dayMs)
  await dropOldBoots(contextOf(site()), { summaryDays: 400, detailDays: 30 })
  expect((await site().tryQuery('boot.get', { bootId: id })).status).toBe(404)
  expect(await list()).toEqual([])
  expect(await site().query('device.get', { deviceId: site().deviceId })).toMatchObject({ lastBoot: null })
})

test('lists go through days newest first and oldest first, whatever the order of arrival and however wrong a clock is', async () => {
  const { api } = site()
  const begins = new Map<string, number>()
  for (let day = 0; day < 12; day += 1) {
    const boots = [0, 5 * dayMs, 4_000 * dayMs].map((late) => {
      const boot = bootWith({
        id: randomUUID(),
        mac: site().mac,
        startedUnixMs: api.clock.now.getTime() - late - day,
      })
      begins.set(boot.id, boot.startedUnixMs)
      return boot
    })
    await site().report(...boots)
    api.clock.advance(dayMs)
  }
  const newestFirst = [...begins].sort(([, a], [, b]) => b - a).map(([id]) => id)
  expect(await list()).toEqual(newestFirst)
  expect(await list({ deviceId: site().deviceId })).toEqual(newestFirst)
  const since = new Date(begins.get(newestFirst[9] ?? '') ?? 0).toISOString()
  expect(await list({ since })).toEqual(newestFirst.slice(0, 10))
  expect(await list({ since, sort: 'startedAt' })).toEqual(newestFirst.slice(0, 10).reverse())
  expect(await list({ deviceId: site().deviceId, sort: 'startedAt' })).toEqual(newestFirst.toReversed())
  for (const sort of ['-startedAt', 'startedAt']) {
    const paged: string[] = []
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page: { items: BootSummary[]; nextCursor: string | null } = await site().query('boot.list', {
        sort,
        cursor,
        limit: 5,
      })
      paged.push(...page.items.map(({ id }) => id))
      cursor = page.nextCursor
    }
    expect(paged).toEqual(sort === 'startedAt' ? newestFirst.toReversed() : newestFirst)
  }
})

test('a site that goes takes its boots along, and nobody else’s', async () => {
  const { api, tenant } = site()
  const second = await site().other('operator')
  const startedUnixMs = api.clock.now.getTime()
  await site().report(bootWith({ id: randomUUID(), mac: site().mac, startedUnixMs }))
  await second.report(bootWith({ id: randomUUID(), mac: second.mac, startedUnixMs }))
  const counts = (organizationId: string) =>
    Promise.all([
      api.db.boot.count({ where: { organizationId } }),
      api.db.bootDetail.count({ where: { organizationId } }),
      api.db.bootKey.count({ where: { organizationId } }),
      api.db.bootRollup.count({ where: { organizationId } }),
    ])
  const { organizationId } = tenant
  await api.db.device.deleteMany({ where: { organizationId } })
  await api.db.collection.deleteMany({ where: { organizationId } })
  await api.db.joinToken.deleteMany({ where: { organizationId } })
  await api.db.edge.deleteMany({ where: { organizationId } })
  await api.db.site.deleteMany({ where: { organizationId } })
  expect(await counts(organizationId)).toEqual([0, 0, 0, 0])
  expect(await counts(second.tenant.organizationId)).toEqual([1, 1, 1, 2])
})

test('the API’s role sees through a partition’s name nothing at all', async () => {
  const database = await createTestDatabase()
  const db = createDb(database.apiUrl)
  try {
    await db.$executeRaw`select ensure_boot_partitions('2026-11-20', '2026-11-20')`
    for (const statement of ['select 1 from boot_20261120', 'delete from boot_detail_20261120'])
      await expect(db.$executeRawUnsafe(statement)).rejects.toThrow(/permission denied/)
    const rows = await db.$queryRaw<{ forced: boolean }[]>`
      select relrowsecurity and relforcerowsecurity as forced from pg_class where relname = 'boot_20261120'`
    expect(rows).toEqual([{ forced: true }])
    await expect(db.$executeRaw`select make_boot_partition('boot', '2026-11-22')`).rejects.toThrow(/permission denied/)
  } finally {
    await db.$disconnect()
    await database.drop()
  }
})
