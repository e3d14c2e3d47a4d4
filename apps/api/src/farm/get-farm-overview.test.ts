import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { FarmOverview } from './schema.ts'

const site = useTestSite('viewer')

function newBoot() {
  const startedUnixMs = site().api.clock.now.getTime() - 60_000
  return bootWith({ id: randomUUID(), mac: site().mac, startedUnixMs })
}

const overviewOf = (farmId: string) => site().query<FarmOverview>('farm.overview', { farmId })

test('a farm shows its own boots, also where the newest of the organization are another farm’s', async () => {
  const { api, tenant } = site()
  const { organizationId, farmId } = tenant
  const own = newBoot()
  await site().report(own)
  const other = await api.db.farm.create({ data: { organizationId, name: 'Other' } })
  const place = { organizationId, farmId: other.id, timeZone: 'UTC' }
  const otherSite = await api.db.site.create({ data: { ...place, name: 'Other' } })
  expect((await overviewOf(farmId)).recentBoots.map(({ id }) => id)).toEqual([own.id])
  expect((await overviewOf(other.id)).recentBoots).toEqual([])
  // Boots stay where they began.
  await api.db.boot.updateMany({ where: { organizationId, id: own.id }, data: { siteId: otherSite.id } })
  const next = newBoot()
  await site().report(next)
  expect((await overviewOf(farmId)).recentBoots.map(({ id }) => id)).toEqual([next.id])
  expect((await overviewOf(other.id)).recentBoots.map(({ id }) => id)).toEqual([own.id])
})

test('figures of hundreds of sites are ten seconds old at most, those of few sites are current', async () => {
  const { api, tenant } = site()
  const { organizationId, farmId } = tenant
  const readyOf = async () => (await overviewOf(farmId)).last24Hours.readyCount
  await site().report(newBoot())
  expect(await readyOf()).toBe(1)
  await site().report(newBoot())
  expect(await readyOf()).toBe(2)
  await api.db.$executeRaw`
    insert into site (organization_id, id, farm_id, name, time_zone)
    select ${organizationId}::uuid, gen_random_uuid(), ${farmId}::uuid, 'Site ' || number, 'UTC'
    from generate_series(1, 500) as number`
  expect(await readyOf()).toBe(2)
  await site().report(newBoot())
  expect(await readyOf()).toBe(2)
  api.clock.advance(10_000)
  expect(await readyOf()).toBe(3)
})
