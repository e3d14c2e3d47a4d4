import { randomUUID } from 'node:crypto'
import { Prisma } from '@bootfarm/db'
import { notify } from '../context/notifications.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { forgetDiscovered } from '../discovery/public.ts'
import { recordChanges, recordNothing } from '../events/record-change.ts'
import type { DeviceFields, PlannedDevice } from './plan-devices.ts'

interface WrittenDevice {
  id: string
  name: string
  kind: 'created' | 'changed' | 'unchanged'
}

/** The columns of a row of `rowOf`. */
const recordColumns = Prisma.sql`id uuid, site_id uuid, collection_id uuid, name text, mac text, enabled boolean, vdisk_id uuid,
  boot_program_set text, boot_menu_choice "BootMenuChoice", boot_menu_id uuid, personality jsonb, tags jsonb, device_type "DeviceType"`

/** Writes plans without problems, in a few statements however many they are. */
export async function writeDevices(context: ServiceContext, planned: PlannedDevice[]): Promise<WrittenDevice[]> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const rows = planned.map((plan) => ({ ...plan, id: plan.deviceId ?? randomUUID(), kind: kindOf(plan) }))
  const created = rows.filter(({ kind }) => kind === 'created')
  const changed = rows.filter(({ kind }) => kind === 'changed')
  if (created.length > 0)
    await db.$executeRaw`insert into device (organization_id, id, site_id, collection_id, name, mac, enabled, vdisk_id, boot_program_set,
        boot_menu_choice, boot_menu_id, personality, tags, device_type, created_at)
      select ${organizationId}::uuid, row.id, row.site_id, row.collection_id, row.name, row.mac, row.enabled, row.vdisk_id,
        row.boot_program_set, row.boot_menu_choice, row.boot_menu_id, row.personality,
        array(select jsonb_array_elements_text(row.tags)), row.device_type, ${clock()}
      from jsonb_to_recordset(${JSON.stringify(created.map(rowOf))}::jsonb) as row (${recordColumns})`
  if (changed.length > 0)
    await db.$executeRaw`update device set site_id = row.site_id, collection_id = row.collection_id, name = row.name,
        mac = row.mac, enabled = row.enabled, vdisk_id = row.vdisk_id, boot_program_set = row.boot_program_set,
        boot_menu_choice = row.boot_menu_choice, boot_menu_id = row.boot_menu_id, personality = row.personality,
        tags = array(select jsonb_array_elements_text(row.tags)), device_type = row.device_type,
        -- Its edges forget a key that only they have accepted: the new collection may require an approval.
        key_revision = device.key_revision + case when device.collection_id <> row.collection_id
          and device.key_sha256 is null and not device.keyless then 1 else 0 end
      from jsonb_to_recordset(${JSON.stringify(changed.map(rowOf))}::jsonb) as row (${recordColumns})
      where device.organization_id = ${organizationId}::uuid and device.id = row.id`
  const written = [...created, ...changed]
  if (written.length === 0) recordNothing(context)
  else
    await recordChanges(
      context,
      written.map(({ id, before, after, siteId, farmId }) => ({
        kind: 'device',
        id,
        name: after.name,
        before: before && { ...before },
        after: { ...after },
        place: { farmId, siteId, collectionId: after.collectionId },
      })),
    )
  await forgetMacs(context, written)
  return rows.map(({ id, after, kind }) => ({ id, name: after.name, kind }))
}

/** A registered device is no longer a discovered one. */
async function forgetMacs({ db, actor }: ServiceContext, written: PlannedDevice[]): Promise<void> {
  const { organizationId } = actor
  for (const siteId of new Set(written.map((plan) => plan.siteId))) {
    const macs = written.flatMap((plan) => (plan.siteId === siteId ? [plan.after.mac] : []))
    await forgetDiscovered(db, { organizationId, siteId }, macs)
  }
  if (written.length > 0) await notify(db, { discovered: { organizationId } })
}

function kindOf({ before, after, siteId, siteIdBefore }: PlannedDevice): WrittenDevice['kind'] {
  if (!before) return 'created'
  return siteId === siteIdBefore && changedFields(before, after).length === 0 ? 'unchanged' : 'changed'
}

/** Names of the fields that differ. */
export function changedFields(before: DeviceFields, after: DeviceFields): (keyof DeviceFields)[] {
  const textOf = (value: unknown) =>
    JSON.stringify(value && typeof value === 'object' && !Array.isArray(value) ? Object.entries(value).sort() : value)
  return (Object.keys(after) as (keyof DeviceFields)[]).filter((name) => textOf(before[name]) !== textOf(after[name]))
}

function rowOf({ id, siteId, after }: PlannedDevice & { id: string }) {
  return {
    id,
    site_id: siteId,
    collection_id: after.collectionId,
    name: after.name,
    mac: after.mac,
    enabled: after.enabled,
    vdisk_id: after.vdiskId,
    boot_program_set: after.bootProgramSet,
    boot_menu_choice: after.bootMenuChoice,
    boot_menu_id: after.bootMenuId,
    personality: after.personality,
    tags: after.tags,
    device_type: after.deviceType,
  }
}
