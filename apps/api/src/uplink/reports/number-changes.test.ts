import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import { makeJoinToken } from '../../../test/test-tenant.ts'

const site = useTestSite('viewer')

async function changeOf(bootId: string): Promise<bigint> {
  const { organizationId } = site().tenant
  const where = { organizationId_bootId: { organizationId, bootId } }
  return (await site().api.db.bootKey.findUniqueOrThrow({ where, select: { change: true } })).change
}

/** How many transactions of the API wait for somebody's lock. */
async function waitingCount(): Promise<number> {
  const [row] = await site().api.db.$queryRaw<{ count: number }[]>`
    select count(*)::integer as count from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  return row?.count ?? 0
}

async function edgeOfAnotherSite(): Promise<EdgeClient> {
  const { api, tenant } = site()
  const { organizationId, farmId } = tenant
  const { id: siteId } = await api.db.site.create({
    data: { organizationId, farmId, name: 'Elsewhere', timeZone: 'UTC' },
    select: { id: true },
  })
  return EdgeClient.enrolled(api.url, await makeJoinToken(api, { ...tenant, siteId }))
}

test('edges of two sites do not wait for each other, and a change that is visible later has a higher number', async () => {
  const { api, edge, tenant, mac, deviceId } = site()
  const elsewhere = await edgeOfAnotherSite()
  const [held, passing] = [randomUUID(), randomUUID()]
  const stranger = (id: string) => bootWith({ id, mac: '02:bf:00:00:0f:01' })
  // The first boot of a day is noted with the day, and others wait for that.
  await elsewhere.reports(1, bootReports(1, [stranger(randomUUID())]))
  const released = Promise.withResolvers<void>()
  const locked = Promise.withResolvers<void>()
  const holding = api.db.$transaction(async (transaction) => {
    await transaction.$queryRaw`select id from device
      where organization_id = ${tenant.organizationId}::uuid and id = ${deviceId}::uuid for update`
    locked.resolve()
    await released.promise
  })
  await locked.promise
  const waiting = edge.reports(1, bootReports(1, [bootWith({ id: held, mac })]))
  await expect.poll(waitingCount).toBe(1)
  expect(await elsewhere.reports(2, bootReports(2, [stranger(passing)]))).toMatchObject({ status: 200 })
  const first = await changeOf(passing)
  released.resolve()
  await holding
  expect(await waiting).toMatchObject({ status: 200 })
  expect(await changeOf(held)).toBe(first + 1n)
})

test('edges of one site at once count each boot once', async () => {
  const { api, edge, tenant } = site()
  const second = await site().enrolEdge()
  const boots = () => tenant.macs.map((mac) => bootWith({ id: randomUUID(), mac }))
  const send = async (client: EdgeClient) => {
    for (let batch = 0; batch < 5; batch++) {
      const fromSeq = 1 + batch * tenant.macs.length
      expect(await client.reports(fromSeq, bootReports(fromSeq, boots()))).toMatchObject({ status: 200 })
    }
  }
  await Promise.all([send(edge), send(second)])
  const { organizationId } = tenant
  const rollups = await api.db.bootRollup.findMany({
    where: { organizationId },
    select: { grain: true, readyCount: true },
  })
  const count = 2 * 5 * tenant.macs.length
  expect(rollups.map(({ grain, readyCount }) => `${grain} ${readyCount}`).sort()).toEqual([
    `day ${count}`,
    `hour ${count}`,
  ])
  const keys = await api.db.bootKey.findMany({
    where: { organizationId },
    orderBy: { change: 'asc' },
    select: { change: true },
  })
  expect(keys.map(({ change }) => Number(change))).toEqual(Array.from({ length: count }, (_, index) => index + 1))
})
