import { createDb } from '@bootfarm/db'
import type { ControlledEdge } from '../edge/controlled-edge.ts'

/** What a version consists of; paths below the store of its edges. */
export interface VersionFiles {
  sizeBytes: number
  diskPath: string
  kernelPath: string
  initrdPath: string | null
  commandLine: string
}

/**
 * Gives some of an edge's devices a vDisk of their own with this class of write cache; its version has the files of the
 * site's first one, or these. Resolves when it is ordered; the edge hears of it later.
 */
export async function addVdisk(
  databaseUrl: string,
  { tenant, api }: Pick<ControlledEdge, 'tenant' | 'api'>,
  deviceIds: string[],
  writeCacheClass: string,
  others?: VersionFiles,
): Promise<string> {
  const { organizationId, farmId, siteId, versionId } = tenant
  const db = createDb(databaseUrl)
  try {
    const name = `Linux, ${writeCacheClass}${others ? ', other files' : ''}`
    const vdisk = await db.vdisk.create({ data: { organizationId, farmId, name } })
    const { sizeBytes, diskPath, kernelPath, initrdPath, commandLine } = await db.vdiskVersion.findUniqueOrThrow({
      where: { organizationId_id: { organizationId, id: versionId } },
    })
    const files = others ?? { sizeBytes, diskPath, kernelPath, initrdPath, commandLine }
    await db.vdiskVersion.create({ data: { organizationId, vdiskId: vdisk.id, number: 1, ...files } })
    const collection = await db.collection.create({ data: { organizationId, siteId, name, vdiskId: vdisk.id } })
    for (const id of deviceIds)
      await db.device.update({
        where: { organizationId_id: { organizationId, id } },
        data: { collectionId: collection.id },
      })
    const writeCache = { class: writeCacheClass, limitBytes: null, full: 'stop' }
    await api.mutate('vdisk.updateWriteCache', { vdiskId: vdisk.id, revision: vdisk.revision, ...writeCache })
    return vdisk.id
  } finally {
    await db.$disconnect()
  }
}
