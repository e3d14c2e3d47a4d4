import type { EdgeClient } from '@bootfarm/api/testing/edge-client'
import type { StoredVersion } from '@bootfarm/proto/uplink'
import type { Tenant } from './tenant.ts'

const sizes = { ownBytes: 2 ** 20, sharedBytes: 2 ** 30, reclaimableBytes: 3 * 2 ** 20 }

/** Adds a sealed version to the tenant's vDisk, based on its first one. @returns its id */
export async function addVersion(
  tenant: Tenant,
  number: number,
  more: { state?: 'test'; releasedAt?: Date } = {},
): Promise<string> {
  const { organizationId, vdiskId, versionId: parentVersionId } = tenant.rows
  const facts = { sizeBytes: 2 ** 31, diskPath: `v${number}`, commandLine: '', manifestCounter: number }
  const manifestRoot = Uint8Array.from(Buffer.alloc(32, number))
  const data = { organizationId, vdiskId, number, parentVersionId, manifestRoot, ...facts, ...more }
  const { id } = await tenant.inDatabase((db) => db.vdiskVersion.create({ data, select: { id: true } }))
  return id
}

/**
 * Version 2 is in test, and the first edge of the site holds it. The second one lacks it, and is told to fetch it: the
 * control plane has the difference.
 */
export async function spreadVersion(tenant: Tenant): Promise<{ second: EdgeClient; versionId: string }> {
  const { organizationId, vdiskId, versionId: first } = tenant.rows
  const manifest = { manifestRoot: Uint8Array.from(Buffer.alloc(32, 1)), manifestCounter: 1 }
  await tenant.inDatabase((db) =>
    db.vdiskVersion.update({ where: { organizationId_id: { organizationId, id: first } }, data: manifest }),
  )
  const versionId = await addVersion(tenant, 2, { state: 'test' })
  const second = await tenant.secondEdge('edge-2')
  const storeJobKinds = ['verify', 'pack', 'fetch']
  await tenant.beats(undefined, { storeJobKinds })
  await tenant.beats(second, { storeJobKinds })
  await holds(tenant, [first, versionId])
  await holds(tenant, [first], second)
  const at = new Date()
  const times = { createdAt: at, neededAt: at, packedAt: at, storedAt: at }
  const content = { baseVersionId: first, sizeBytes: 1000, listSha256: 'ab'.repeat(32) }
  const data = { organizationId, vdiskId, versionId, ...content, ...times }
  await tenant.inDatabase((db) => db.difference.create({ data }))
  return { second, versionId }
}

/** The edge's store holds these versions and no others. */
export async function holds(tenant: Tenant, versionIds: string[], edge?: EdgeClient): Promise<void> {
  const versions: StoredVersion[] = versionIds.map((versionId) => ({ versionId, state: 'present', ...sizes }))
  await tenant.storeSays({ inventory: { scan: 1, isLast: true, versions } }, edge)
}
