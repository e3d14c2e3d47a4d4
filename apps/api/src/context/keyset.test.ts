import { expect, test } from 'vitest'
import { useTestSite } from '../../test/test-site.ts'

const site = useTestSite('admin')

interface Named {
  items: { name: string }[]
}

const once = { kind: 'cron', expression: '30 6 * * 1-5' }
const localDisk = { title: 'Local disk', starts: { kind: 'local_disk' } }

/** Creates an object of this name, by the lists that find it. */
const create: Record<string, (name: string) => Promise<unknown>> = {
  farm: (name) => site().mutate('farm.create', { name }),
  site: (name) => site().mutate('site.create', { farmId: site().tenant.farmId, name, timeZone: 'UTC' }),
  store: (name) => site().mutate('store.create', { farmId: site().tenant.farmId, name, note: '' }),
  vdisk: (name) => site().mutate('vdisk.create', { farmId: site().tenant.farmId, name, note: '', storeId: null }),
  collection: (name) => site().mutate('collection.create', { siteId: site().tenant.siteId, name, vdiskId: null }),
  bootMenu: (name) =>
    site().mutate('bootMenu.create', {
      farmId: site().tenant.farmId,
      name,
      timeoutMs: 10_000,
      defaultEntry: 0,
      entries: [localDisk],
    }),
  schedule: (name) =>
    site().mutate('schedule.create', {
      farmId: site().tenant.farmId,
      name,
      siteId: null,
      when: once,
      timeZone: 'UTC',
      targets: [{ kind: 'tag', tag: 'lab' }],
      ratePerMinute: 60,
      power: 'wake_on_lan',
    }),
  edge: (name) => {
    const { organizationId, siteId } = site().tenant
    return site().api.db.edge.updateMany({ where: { organizationId, siteId }, data: { name } })
  },
}

test.each(Object.keys(create))('%s.list finds by a part of the name, and takes signs as they are', async (noun) => {
  await create[noun]?.('Hall 50% East')
  const found = async (search: string) => {
    const { items } = await site().query<Named>(`${noun}.list`, { search })
    return items.map(({ name }) => name)
  }
  expect(await found('50% eaST')).toEqual(['Hall 50% East'])
  expect(await found('50_')).toEqual([])
  expect(await found('no such name')).toEqual([])
})
