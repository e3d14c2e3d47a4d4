import type { DbTransaction } from '@bootfarm/db'
import type { BootReport, DeviceKeyReport } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge } from '../../context/service-context.ts'
import { emit, type KeyAlarm } from '../../events/event-bus.ts'
import { type DeviceKey, isAlarm, type KeyLearning, takeKeyReport } from '../../rules/device/device-key.ts'
import { recordOfEdge } from '../enrol/record-of-edge.ts'

interface KeyRow extends DeviceKey {
  id: string
  name: string
  mac: string
  collectionId: string
  lastBootId: string | null
  learn: KeyLearning
}

type JudgedBoot = BootReport & { deviceKey: DeviceKeyReport }

/**
 * Applies what edges report of devices' keys, in the order of the reports. Boots come first: only the newest one of a
 * device may say that it proved no key. A key that becomes known by it wakes the site's edges, and is in the audit log.
 */
export async function applyDeviceKeys(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { boots, now }: { boots: BootReport[]; now: Date },
): Promise<void> {
  const judged = boots.filter((boot): boot is JudgedBoot => boot.deviceKey !== undefined && !boot.generated)
  if (judged.length === 0) return
  const macs = [...new Set(judged.map(({ mac }) => mac))]
  const before = await lockKeys(transaction, edge, macs)
  const after = new Map(before)
  const alarms: KeyAlarm[] = []
  for (const boot of judged) {
    const device = after.get(boot.mac)
    if (!device) continue
    const facts = { learn: device.learn, bootId: boot.id, isNewestBoot: device.lastBootId === boot.id, now }
    const key = takeKeyReport(device, boot.deviceKey, facts)
    if (!key) continue
    after.set(boot.mac, { ...device, ...key })
    if (isAlarm(key.label) && (key.label !== device.label || key.claimed !== device.claimed))
      alarms.push({
        ...key,
        label: key.label,
        deviceId: device.id,
        collectionId: device.collectionId,
        deviceName: device.name,
        mac: device.mac,
      })
  }
  const changed = [...after.values()].filter((device) => device !== before.get(device.mac))
  if (changed.length > 0) await writeKeys(transaction, edge, { devices: changed, now })
  const accepted = changed.filter(({ mac, key }) => key !== before.get(mac)?.key)
  if (accepted.length > 0)
    await recordOfEdge({ db: transaction, now }, edge, (at) =>
      accepted.map(({ id, name, collectionId, key }) => ({
        action: 'device.acceptKey',
        kind: 'device',
        id,
        name,
        place: { ...at, collectionId },
        before: { key: null },
        after: { key },
      })),
    )
  if (alarms.length > 0) await emit('keyAlarmsRaised', { db: transaction, now, edge, alarms })
}

/** By MAC address, locked until the transaction ends: a person may decide at the same time. */
async function lockKeys(
  transaction: DbTransaction,
  { organizationId, siteId }: AuthenticatedEdge,
  macs: string[],
): Promise<Map<string, KeyRow>> {
  const rows = await transaction.$queryRaw<KeyRow[]>`
    select device.id, device.name, device.mac, device.collection_id as "collectionId",
      device.last_boot_id as "lastBootId", collection.key_learn as learn, encode(device.key_sha256, 'hex') as key,
      device.keyless, device.key_revision as revision, device.key_label as label,
      encode(device.key_claimed, 'hex') as claimed, device.key_claim_boot_id as "claimBootId",
      device.key_claimed_at as "claimedAt"
    from device join collection on collection.organization_id = device.organization_id
      and collection.id = device.collection_id
    where device.organization_id = ${organizationId}::uuid and device.site_id = ${siteId}::uuid
      and device.mac = any(${macs}::text[])
    order by device.id for no key update of device`
  return new Map(rows.map((row) => [row.mac, row]))
}

/** An edge never changes what a person has decided, and with it the revision. */
async function writeKeys(
  transaction: DbTransaction,
  { organizationId }: AuthenticatedEdge,
  { devices, now }: { devices: KeyRow[]; now: Date },
): Promise<void> {
  const rows = devices.map(({ id, key, label, claimed, claimBootId, claimedAt }) => ({
    id,
    key,
    label,
    claimed,
    claim_boot_id: claimBootId,
    claimed_at: claimedAt,
  }))
  await transaction.$executeRaw`
    update device set key_label = row.label, key_claimed = decode(row.claimed, 'hex'),
      key_claim_boot_id = row.claim_boot_id, key_claimed_at = row.claimed_at,
      key_decided_at = case when key_sha256 is null and row.key is not null then ${now} else key_decided_at end,
      key_decided_by_name = case when key_sha256 is null and row.key is not null then null else key_decided_by_name end,
      key_decided_by_user_id =
        case when key_sha256 is null and row.key is not null then null else key_decided_by_user_id end,
      key_sha256 = coalesce(key_sha256, decode(row.key, 'hex'))
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (id uuid, key text, label "DeviceKeyLabel",
      claimed text, claim_boot_id uuid, claimed_at timestamptz)
    where device.organization_id = ${organizationId}::uuid and device.id = row.id`
}
