import { randomUUID } from 'node:crypto'
import { bootReports, bootWith, discoveredWith, EdgeClient } from '../edge-client.ts'
import type { SampleTenant } from '../sample.ts'
import type { TestApi } from '../test-api.ts'
import { makeJoinToken } from '../test-tenant.ts'

/** Objects beside the samples, in the same organization. */
export interface Neighbours {
  /** Another site of the farm, with an edge, a collection, a device, a boot, a discovered machine and a schedule. */
  siteId: string
  siteCollectionId: string
  /** Another collection of the samples' own site, with a device that booted. */
  collectionId: string
}

export async function createNeighbours(api: TestApi, tenant: SampleTenant): Promise<Neighbours> {
  const { organizationId, farmId, vdiskId, siteId: ownSiteId } = tenant
  const place = { organizationId, farmId, timeZone: 'UTC' }
  const site = await api.db.site.create({ data: { ...place, name: 'The site beside' }, select: { id: true } })
  const addCollection = async (siteId: string, number: number) => {
    const name = `The collection beside ${number}`
    const collection = await api.db.collection.create({
      data: { organizationId, siteId, name, vdiskId },
      select: { id: true },
    })
    const mac = `02:bf:00:00:01:0${number}`
    const device = {
      organizationId,
      siteId,
      collectionId: collection.id,
      mac,
      name: `beside-device-${number}`,
    }
    await api.db.device.create({ data: device, select: { id: true } })
    return { collectionId: collection.id, mac }
  }
  const inside = await addCollection(ownSiteId, 1)
  const outside = await addCollection(site.id, 2)
  await reportOf(api, { ...tenant, siteId: ownSiteId }, { mac: inside.mac, stranger: '02:bf:00:00:02:01' })
  await reportOf(api, { ...tenant, siteId: site.id }, { mac: outside.mac, stranger: '02:bf:00:00:02:02' })
  await addSchedules(api, tenant, [ownSiteId, site.id])
  return { siteId: site.id, siteCollectionId: outside.collectionId, collectionId: inside.collectionId }
}

/** Makes an edge of the site report two boots of one device, one of which failed, and a request of an unknown one. */
async function reportOf(
  api: TestApi,
  tenant: SampleTenant,
  { mac, stranger }: { mac: string; stranger: string },
): Promise<void> {
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const failed = { kind: 'failed', phase: 'nbp', cause: 'tftp_timeout', text: 'no answer' } as const
  const boots = [bootWith({ id: randomUUID(), mac, outcome: failed }), bootWith({ id: randomUUID(), mac })]
  const answer = await edge.reports(1, [
    ...bootReports(1, boots),
    { seq: 3, type: 'discovered', device: discoveredWith({ mac: stranger }) },
  ])
  if (answer.status !== 200) throw new Error(`reports were answered ${answer.status}`)
}

async function addSchedules(api: TestApi, tenant: SampleTenant, siteIds: string[]): Promise<void> {
  const { organizationId, farmId } = tenant
  const now = api.clock.now
  const schedule = {
    organizationId,
    farmId,
    ratePerMinute: 10,
    kind: 'cron' as const,
    cron: '0 7 * * *',
    timeZone: 'UTC',
    preparedUntil: now,
    createdAt: now,
    updatedAt: now,
  }
  await api.db.schedule.createMany({
    data: siteIds.map((siteId) => ({ ...schedule, siteId, name: `of ${siteId}` })),
  })
}
