import { type DbTransaction, inOrganization } from '@bootfarm/db'
import type { PlatformContext, SystemContext } from '../context/service-context.ts'
import { createOrganization } from '../organization/create-organization.ts'

const organizationSlug = 'demo'
const deviceCount = 6
/** What the demo's simulated devices boot: made beside the edge's store at start. */
const demoVersion = {
  number: 1,
  sizeBytes: 419_430_400,
  diskPath: 'demo/1/disk.raw',
  kernelPath: 'demo/1/kernel',
  initrdPath: 'demo/1/initrd',
  commandLine: 'console=ttyS0 ro',
}

/** For devices that somebody makes test devices; until it is promoted nobody else boots it. */
const testVersion = {
  ...demoVersion,
  number: 2,
  state: 'test' as const,
  commandLine: 'console=ttyS0 ro loglevel=7',
  note: 'The same disk, whose kernel says more while it boots.',
}

export interface DemoRows {
  organizationId: string
  farmId: string
  siteId: string
}

/** The demo's organization with everything in it; what is there already stays as it is. */
export async function ensureDemoRows(context: PlatformContext, ownerUserId: string): Promise<DemoRows> {
  const organizationId = await ensureDemoOrganization(context, ownerUserId)
  return inOrganization(context.db, organizationId, async (transaction) => {
    const demoFarm = { organizationId, name: 'Demo farm' }
    const farm =
      (await transaction.farm.findFirst({ where: demoFarm, select: { id: true } })) ??
      (await transaction.farm.create({ data: demoFarm, select: { id: true } }))
    const vdiskId = await ensureVdisk(transaction, organizationId, farm.id)
    const demoSite = { organizationId, farmId: farm.id, name: 'Demo site' }
    const site =
      (await transaction.site.findFirst({ where: demoSite, select: { id: true } })) ??
      (await transaction.site.create({
        data: { ...demoSite, timeZone: 'Europe/Berlin' },
        select: { id: true },
      }))
    await ensureDevices(transaction, { organizationId, siteId: site.id, vdiskId })
    return { organizationId, farmId: farm.id, siteId: site.id }
  })
}

/** The one of this slug that its owner is a member of: both are made in one transaction. */
async function ensureDemoOrganization(context: PlatformContext, ownerUserId: string): Promise<string> {
  const [known] = await context.db.$queryRaw<{ id: string }[]>`
    select organization_id::text as id from memberships_of(${ownerUserId}::uuid)
    where organization_slug = ${organizationSlug}`
  return known?.id ?? (await createOrganization(context, { slug: organizationSlug, name: 'Demo', ownerUserId }))
}

async function ensureVdisk(transaction: DbTransaction, organizationId: string, farmId: string): Promise<string> {
  const demoVdisk = { organizationId, farmId, name: 'Demo Linux' }
  const known = await transaction.vdisk.findFirst({ where: demoVdisk, select: { id: true } })
  const vdisk = known ?? (await transaction.vdisk.create({ data: demoVdisk, select: { id: true } }))
  await transaction.vdiskVersion.upsert({
    where: {
      organizationId_vdiskId_number: { organizationId, vdiskId: vdisk.id, number: demoVersion.number },
    },
    create: { organizationId, vdiskId: vdisk.id, ...demoVersion },
    update: {},
    select: { id: true },
  })
  // Whoever deletes it has deleted it.
  if (!known)
    await transaction.vdiskVersion.create({
      data: { organizationId, vdiskId: vdisk.id, ...testVersion },
      select: { id: true },
    })
  return vdisk.id
}

interface DeviceOptions {
  organizationId: string
  siteId: string
  vdiskId: string
}

/** Six devices in two collections: 02:bf:00:00:00:01 to :06, the addresses that bootfarm-sim uses. */
async function ensureDevices(
  transaction: DbTransaction,
  { organizationId, siteId, vdiskId }: DeviceOptions,
): Promise<void> {
  const collectionIds: string[] = []
  for (const name of ['Classroom', 'Lab']) {
    const place = { organizationId, siteId, name }
    const collection =
      (await transaction.collection.findFirst({ where: place, select: { id: true } })) ??
      (await transaction.collection.create({ data: { ...place, vdiskId }, select: { id: true } }))
    collectionIds.push(collection.id)
  }
  for (let number = 1; number <= deviceCount; number++) {
    const mac = `02:bf:00:00:00:${String(number).padStart(2, '0')}`
    const isFirstHalf = number <= deviceCount / 2
    const collectionId = collectionIds[isFirstHalf ? 0 : 1] ?? ''
    const name = `demo-${String(number).padStart(2, '0')}`
    await transaction.device.createMany({
      data: { organizationId, siteId, collectionId, mac, name },
      skipDuplicates: true,
    })
  }
}

export async function hasEnrolledEdge({ db }: SystemContext, { organizationId, siteId }: DemoRows): Promise<boolean> {
  const edge = await db.edge.findFirst({
    where: { organizationId, siteId, revokedAt: null },
    select: { id: true },
  })
  return edge !== null
}
