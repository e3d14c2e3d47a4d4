import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange, recordChanges } from '../events/record-change.ts'
import { type DeviceKey, decideKey, fingerprintOf } from '../rules/device/device-key.ts'
import type { approveKeysInput, ChangedKey, decideKeyInput } from './schema.ts'

const keySelect = {
  name: true,
  keySha256: true,
  keyless: true,
  keyRevision: true,
  keyLabel: true,
  keyClaimed: true,
  keyClaimBootId: true,
  keyClaimedAt: true,
  keyDecidedByName: true,
  keyDecidedAt: true,
} as const satisfies Prisma.DeviceSelect
type KeyRow = Prisma.DeviceGetPayload<{ select: typeof keySelect }>

/**
 * Decides whose key a device's is; edges obey with its next boot. Throws `not_found`; `conflict` if somebody else has
 * decided since, if the device has claimed another key than `claimedKey` since, or if there is nothing to decide.
 */
export async function decideDeviceKey(
  context: ServiceContext,
  { deviceId, decision, keyRevision, claimedKey }: z.output<typeof decideKeyInput>,
): Promise<ChangedKey> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  await lockRow(db, 'device', { organizationId, id: deviceId, strength: 'no key update' })
  const where = ownRow(actor, deviceId)
  const device = await db.device.findUnique({ where, select: keySelect })
  if (!device) throw new AppError('not_found')
  if (device.keyRevision !== keyRevision) throw decidedMeanwhile(device)
  const before = keyOf(device)
  if (decision === 'approve' && before.claimed !== claimedKey) throw claimedMeanwhile(device)
  const after = decideKey(before, decision)
  if (typeof after === 'string') throw new AppError('conflict', { public: `${device.name}: ${after}` })
  await db.device.update({
    where,
    data: {
      keySha256: after.key === null ? null : Uint8Array.from(Buffer.from(after.key, 'hex')),
      keyless: after.keyless,
      keyRevision: after.revision,
      keyLabel: after.label,
      keyClaimed: null,
      keyClaimBootId: null,
      keyClaimedAt: null,
      keyDecidedByUserId: actor.userId,
      keyDecidedByName: actor.userName,
      keyDecidedAt: clock(),
    },
    select: { id: true },
  })
  await recordChange(context, {
    kind: 'device',
    id: deviceId,
    name: device.name,
    before: auditOf(before),
    after: { ...auditOf(after), ...(decision === 'keep' ? { keyRefused: before.claimed } : {}) },
  })
  return { keyLabel: after.label, keyRevision: after.revision }
}

/**
 * Approves all keys of a collection that waited at `claimedUntil`: those of one morning, of a whole classroom. Alarms
 * are decided one by one. Throws `conflict` unless `waitingCount` keys wait since then: a device has claimed another
 * key meanwhile, or somebody else has decided.
 */
export async function approveWaitingKeys(
  context: ServiceContext,
  { collectionId, claimedUntil, waitingCount }: z.output<typeof approveKeysInput>,
): Promise<{ count: number }> {
  const { db, clock, actor } = context
  const { organizationId, userId, userName } = actor
  const approved = await db.$queryRaw<{ id: string; name: string; key: string }[]>`
    with waiting as (
      select id from device where organization_id = ${organizationId}::uuid
        and collection_id = ${collectionId}::uuid and key_label = 'key_waits' and key_claimed is not null
        and key_claimed_at <= ${new Date(claimedUntil)} order by id for no key update
    )
    update device set key_sha256 = key_claimed, keyless = false, key_revision = key_revision + 1,
      key_label = 'key_known', key_claimed = null, key_claim_boot_id = null, key_claimed_at = null, key_decided_by_user_id = ${userId}::uuid,
      key_decided_by_name = ${userName}, key_decided_at = ${clock()}
    from waiting where device.organization_id = ${organizationId}::uuid and device.id = waiting.id
    returning device.id, device.name, encode(device.key_sha256, 'hex') as key`
  if (approved.length !== waitingCount)
    throw new AppError('conflict', {
      public: `Nothing was approved: ${approved.length} of the ${waitingCount} keys that you have seen still wait. A device has proved another key since, or somebody else has decided. Load the list again, and compare it.`,
    })
  await recordChanges(
    context,
    approved.map(({ id, name, key }) => ({ kind: 'device', id, name, before: { key: null }, after: { key } })),
  )
  return { count: approved.length }
}

function keyOf(row: KeyRow): DeviceKey {
  return {
    key: fingerprintOf(row.keySha256),
    keyless: row.keyless,
    revision: row.keyRevision,
    label: row.keyLabel,
    claimed: fingerprintOf(row.keyClaimed),
    claimBootId: row.keyClaimBootId,
    claimedAt: row.keyClaimedAt,
  }
}

function auditOf({ key, keyless, label }: DeviceKey) {
  return { key, keyless, keyLabel: label }
}

function decidedMeanwhile({ name, keyRevision, keyDecidedByName, keyDecidedAt }: KeyRow): AppError {
  const who = keyDecidedByName ?? 'Somebody else'
  const at = keyDecidedAt ? ` at ${keyDecidedAt.toISOString().slice(11, 16)} UTC` : ''
  return new AppError('conflict', {
    public: `${who} has decided on the key of ${name}${at}. Load the device again to see how.`,
    extra: { keyRevision },
  })
}

function claimedMeanwhile({ name, keyRevision, keyClaimed }: KeyRow): AppError {
  const claimed = fingerprintOf(keyClaimed)
  return new AppError('conflict', {
    public: claimed
      ? `${name} has proved another key since: ${claimed}. Compare it with the machine’s before you approve it.`
      : `${name} has proved no key that waits for a decision.`,
    extra: { keyRevision },
  })
}
