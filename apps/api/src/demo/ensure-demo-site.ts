import type { DbTransaction } from '@bootfarm/db'
import { macAddress } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { ownRow, type SystemContext } from '../context/service-context.ts'

/** One more site of the demo, whose edge serves real machines: what they boot, and which of them are registered. */
export const demoSite = z.strictObject({
  name: z.string().min(1),
  unknownDevices: z.enum(['ignore', 'boot']),
  /** The version for all of its devices. Paths below the edge's store. */
  vdisk: z.strictObject({
    name: z.string().min(1),
    sizeBytes: z.number().int().positive(),
    diskPath: z.string().min(1),
    kernelPath: z.string().min(1).nullable(),
    initrdPath: z.string().min(1).nullable(),
    commandLine: z.string(),
  }),
  /** True while its edge is not enrolled, and so needs a join token. */
  needsJoinToken: z.boolean(),
  devices: z.array(z.strictObject({ name: z.string().min(1), mac: macAddress })).max(100),
})
export type DemoSite = z.infer<typeof demoSite>

interface DemoFarm {
  organizationId: string
  farmId: string
}

/**
 * Creates the missing parts of the site. Its vDisk has one version: another disk, kernel or command line becomes the
 * next one and replaces it, because the previous files are gone from the store.
 */
export async function ensureDemoSite(
  { db }: SystemContext,
  { organizationId, farmId }: DemoFarm,
  wanted: DemoSite,
): Promise<{ siteId: string }> {
  return db.$transaction(async (transaction) => {
    const named = { organizationId, farmId, name: wanted.name }
    const { id: siteId } =
      (await transaction.site.findFirst({ where: named, select: { id: true } })) ??
      (await transaction.site.create({ data: { ...named, timeZone: 'Europe/Berlin' }, select: { id: true } }))
    await transaction.site.update({
      where: ownRow({ organizationId }, siteId),
      data: { unknownDevices: wanted.unknownDevices },
    })
    const vdiskId = await ensureVdisk(transaction, { organizationId, farmId }, wanted.vdisk)
    const collectionId = await ensureCollection(transaction, {
      organizationId,
      siteId,
      vdiskId,
      name: wanted.name,
    })
    await transaction.device.createMany({
      data: wanted.devices.map(({ name, mac }) => ({ organizationId, siteId, collectionId, mac, name })),
      skipDuplicates: true,
    })
    return { siteId }
  })
}

async function ensureCollection(
  transaction: DbTransaction,
  { vdiskId, ...named }: { organizationId: string; siteId: string; name: string; vdiskId: string },
): Promise<string> {
  const known = await transaction.collection.findFirst({ where: named, select: { id: true } })
  if (!known) return (await transaction.collection.create({ data: { ...named, vdiskId }, select: { id: true } })).id
  await transaction.collection.update({ where: ownRow(named, known.id), data: { vdiskId } })
  return known.id
}

async function ensureVdisk(
  transaction: DbTransaction,
  { organizationId, farmId }: DemoFarm,
  { name, ...files }: DemoSite['vdisk'],
): Promise<string> {
  const named = { organizationId, farmId, name }
  const { id: vdiskId } =
    (await transaction.vdisk.findFirst({ where: named, select: { id: true } })) ??
    (await transaction.vdisk.create({ data: named, select: { id: true } }))
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
