import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { VdiskDetail } from './schema.ts'

const site = useTestSite('viewer')
const read = () => site().query<VdiskDetail>('vdisk.get', { vdiskId: site().tenant.vdiskId })

test('a vDisk that thousands of collections boot names the first 200, and counts all', async () => {
  const { api, tenant } = site()
  const { organizationId, siteId, vdiskId, collectionId } = tenant
  await api.db.$executeRaw`
    insert into collection (organization_id, id, site_id, name, vdisk_id)
    select ${organizationId}::uuid, gen_random_uuid(), ${siteId}::uuid, 'Room ' || (1000 + number), ${vdiskId}::uuid
    from generate_series(1, 204) as number`
  const vdisk = await read()
  expect([vdisk.collectionCount, vdisk.collections.length]).toEqual([205, 200])
  expect(vdisk.collections[0]).toMatchObject({ id: collectionId, name: 'Lab', deviceCount: 6 })
  expect(vdisk.collections[199]).toMatchObject({ name: 'Room 1199', deviceCount: 0 })
})

test('devices are counted by what their last boot reads, whichever release has written it', async () => {
  const { api, tenant } = site()
  const { organizationId, vdiskId, versionId, macs } = tenant
  const startedUnixMs = api.clock.now.getTime() - 60_000
  const bootOf = (mac: string) => bootWith({ id: randomUUID(), mac, startedUnixMs, vdiskId, versionId })
  await site().report(...macs.slice(0, 5).map(bootOf))
  const running = async () => (await read()).versions[0]?.running
  const all = { count: 5, names: ['pc-01', 'pc-02', 'pc-03'] }
  expect(await running()).toEqual(all)
  // As the release before leaves a device that booted again.
  await api.db.$executeRaw`update device set runs_boot_id = gen_random_uuid(), runs_version_id = gen_random_uuid()
    where organization_id = ${organizationId}::uuid and name = 'pc-02'`
  expect(await running()).toEqual(all)
  await api.db.$executeRaw`update device set last_boot_outcome = 'failed'
    where organization_id = ${organizationId}::uuid and name in ('pc-01', 'pc-02')`
  expect(await running()).toEqual({ count: 3, names: ['pc-03', 'pc-04', 'pc-05'] })
})
