import type { DbTransaction } from '@bootfarm/db'
import { macAddress } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import type { SystemContext } from '../service-context.ts'

/** One more site of the demo, whose edge serves real machines: what they boot, and which of them are known by name. */
export const demoSite = z.strictObject({
  name: z.string().min(1),
  unknownDevices: z.enum(['ignore', 'boot']),
  /** What all of its devices boot. Paths below the edge's store. */
  vdisk: z.strictObject({
    name: z.string().min(1),
    sizeBytes: z.number().int().positive(),
    diskPath: z.string().min(1),
    kernelPath: z.string().min(1).nullable(),
    initrdPath: z.string().min(1).nullable(),
    commandLine: z.string(),
  }),
  /** Whether its edge has yet to enrol, and so needs a join token. */
  needsJoinToken: z.boolean(),
  devices: z.array(z.strictObject({ name: z.string().min(1), mac: macAddress })).max(100),
})
export type DemoSite = z.infer<typeof demoSite>

interface DemoFarm {
  organizationId: string
  farmId: string
}

/**
 * Makes what is missing of the site. Its vDisk has one version: another disk, kernel or command line is the next one in its
 * place, since the files of the one before are gone from the store.
 */
export async function ensureDemoSite(
  { db }: SystemContext,
  { organizationId, farmId }: DemoFarm,
  wanted: DemoSite,
): Promise<{ siteId: string }> {
  return db.$transaction(async (transaction) => {
    const { id: siteId } = await transaction.site.upsert({
      where: { organizationId_farmId_name: { organizationId, farmId, name: wanted.name } },
      create: { organizationId, farmId, name: wanted.name, timeZone: 'Europe/Berlin' },
      update: {},
      select: { id: true },
    })
    await transaction.site.update({
      where: { organizationId_id: { organizationId, id: siteId } },
      data: { unknownDevices: wanted.unknownDevices },
    })
    const vdiskId = await ensureVdisk(transaction, { organizationId, farmId }, wanted.vdisk)
    const { id: collectionId } = await transaction.collection.upsert({
      where: { organizationId_siteId_name: { organizationId, siteId, name: wanted.name } },
      create: { organizationId, siteId, name: wanted.name, vdiskId },
      update: { vdiskId },
      select: { id: true },
    })
    for (const { name, mac } of wanted.devices)
      await transaction.device.upsert({
        where: { organizationId_siteId_mac: { organizationId, siteId, mac } },
        create: { organizationId, siteId, collectionId, mac, name },
        update: {},
        select: { id: true },
      })
    return { siteId }
  })
}

async function ensureVdisk(
  transaction: DbTransaction,
  { organizationId, farmId }: DemoFarm,
  { name, ...files }: DemoSite['vdisk'],
): Promise<string> {
  const { id: vdiskId } = await transaction.vdisk.upsert({
    where: { organizationId_farmId_name: { organizationId, farmId, name } },
    create: { organizationId, farmId, name },
    update: {},
    select: { id: true },
  })
  const newest = await transaction.vdiskVersion.findFirst({
    where: { organizationId, vdiskId },
    orderBy: { number: 'desc' },
    select: {
      number: true,
      sizeBytes: true,
      diskPath: true,
      kernelPath: true,
      initrdPath: true,
      commandLine: true,
    },
  })
  const known = newest && JSON.stringify(comparable({ ...newest, sizeBytes: Number(newest.sizeBytes) }))
  if (known === JSON.stringify(comparable(files))) return vdiskId
  const next = await transaction.vdiskVersion.create({
    data: { organizationId, vdiskId, number: (newest?.number ?? 0) + 1, ...files },
    select: { id: true },
  })
  // A boot menu that names the version before names the one that stands in its place.
  await transaction.bootMenuEntry.updateMany({
    where: { organizationId, vdiskId, versionId: { not: null } },
    data: { versionId: next.id },
  })
  await transaction.vdiskVersion.deleteMany({ where: { organizationId, vdiskId, id: { not: next.id } } })
  return vdiskId
}

function comparable(files: Omit<DemoSite['vdisk'], 'name'>) {
  return [files.sizeBytes, files.diskPath, files.kernelPath, files.initrdPath, files.commandLine]
}
