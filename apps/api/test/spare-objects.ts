import { randomUUID } from 'node:crypto'
import type { TestApi } from './test-api.ts'
import type { TestTenant } from './test-tenant.ts'

export const spareKinds = ['farm', 'site', 'collection', 'device', 'vdisk', 'version', 'store'] as const
export type SpareKind = (typeof spareKinds)[number]

/** For what deletes, restores and purges: each call another one. */
export interface SpareObjects {
  objects: Record<SpareKind, string[]>
  /** Deletions of one object each. */
  deletions: Record<SpareKind, string[]>
  /** Deletions of devices. */
  purgeable: string[]
}

const spareCount = 24

/** Creates equally many live and deleted objects of each kind. */
export async function createSpareObjects({ db }: Pick<TestApi, 'db'>, tenant: TestTenant): Promise<SpareObjects> {
  const { organizationId, farmId, siteId, collectionId } = tenant
  const objects = {} as SpareObjects['objects']
  const deletions = {} as SpareObjects['deletions']
  for (const kind of spareKinds) {
    objects[kind] = ids()
    deletions[kind] = kind === 'device' ? [...ids(), ...ids()] : ids()
    await db.deletion.createMany({
      data: deletions[kind].map((id) => ({
        organizationId,
        id,
        kind,
        objectId: id,
        objectName: id,
        farmId: kind === 'farm' ? id : farmId,
        counts: {},
        deletedAt: new Date(),
        deletedByName: 'nobody',
      })),
    })
    // A deleted object has its deletion's id.
    const rows = [
      ...objects[kind].map((id) => ({ organizationId, id, deletionId: null })),
      ...deletions[kind].map((id) => ({ organizationId, id, deletionId: id })),
    ]
    const named = rows.map((row) => ({ ...row, name: row.id }))
    if (kind === 'farm') await db.farm.createMany({ data: named })
    if (kind === 'site') await db.site.createMany({ data: named.map((row) => ({ ...row, farmId, timeZone: 'UTC' })) })
    if (kind === 'collection') await db.collection.createMany({ data: named.map((row) => ({ ...row, siteId })) })
    if (kind === 'device')
      await db.device.createMany({
        data: named.map((row, index) => ({ ...row, siteId, collectionId, mac: spareMac(index) })),
      })
    if (kind === 'vdisk') await db.vdisk.createMany({ data: named.map((row) => ({ ...row, farmId })) })
    if (kind === 'store') await db.store.createMany({ data: named.map((row) => ({ ...row, farmId })) })
    if (kind === 'version')
      await db.vdiskVersion.createMany({
        data: rows.map((row, index) => ({
          ...row,
          vdiskId: objects.vdisk[0] ?? '',
          number: index + 2,
          sizeBytes: 512,
          diskPath: 'spare',
          commandLine: '',
        })),
      })
  }
  return { objects, deletions, purgeable: deletions.device.splice(0, spareCount) }
}

function ids(): string[] {
  return Array.from({ length: spareCount }, () => randomUUID())
}

function spareMac(index: number): string {
  return `02:bf:00:00:ff:${index.toString(16).padStart(2, '0')}`
}
