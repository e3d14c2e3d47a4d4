import { Prisma } from '@bootfarm/db'
import type { BootOutcome } from '@bootfarm/proto/boot-phases'
import {
  reportedWaitOf,
  type WaitEdgeJson,
  type WaitJson,
  waitEdgeJson,
  waitEdgeOf,
  waitsJson,
} from '../boot/public.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { fingerprintOf } from '../rules/device/device-key.ts'
import { type DeviceState, deviceStateOf } from '../rules/device/device-state.ts'
import { type DeviceWait, deviceWaitOf } from '../rules/device/device-wait.ts'
import { versionFor } from '../rules/device/version-access.ts'
import { type WriteCacheView, writeCacheOf } from '../rules/device/write-cache.ts'
import { type ChoicesJson, choicesJson, resolvedOf } from '../vdisk/public.ts'
import type { DeviceSummary, PowerOrderView } from './schema.ts'

/** An order that is over is shown for this long. */
const powerOrderShownMs = 600_000

export const deviceSummarySelect = {
  id: true,
  name: true,
  mac: true,
  enabled: true,
  deviceType: true,
  tags: true,
  revision: true,
  createdAt: true,
  siteId: true,
  collectionId: true,
  vdiskId: true,
  homeEdgeId: true,
  keyLabel: true,
  keyClaimed: true,
  lastBootId: true,
  lastBootStartedAt: true,
  lastBootOutcome: true,
  lastBootTotalUs: true,
} satisfies Prisma.DeviceSelect
type DeviceSummaryRow = Prisma.DeviceGetPayload<{ select: typeof deviceSummarySelect }>

/**
 * Reads the names that devices' rows refer to, by kind and id; for an order the id is its device's, or its boot's if it
 * was taken in that.
 */
class DeviceNames {
  readonly #values: Map<string, unknown>

  constructor(rows: { kind: string; id: string; value: unknown }[]) {
    this.#values = new Map(rows.map(({ kind, id, value }) => [`${kind} ${id}`, value]))
  }

  get<Kind extends keyof Named>(kind: Kind, id: string | null): Named[Kind] | undefined {
    return this.#values.get(`${kind} ${id}`) as Named[Kind] | undefined
  }
}

interface Named {
  site: { name: string }
  collection: { name: string; vdiskId: string | null }
  vdisk: { name: string; keepsWrites: boolean; versions: ChoicesJson }
  boot: NamedBoot
  order: { id: string; order: PowerOrderKind; requestedAt: string; expiresAt: string; takenAt: string | null }
  taken: { order: PowerOrderKind; takenAt: string }
  home: WaitEdgeJson
  wait: WaitJson
}
type PowerOrderKind = PowerOrderView['order']

interface NamedBoot {
  startedAt: string
  updatedAt: string
  outcome: BootOutcome | null
  totalUs: number
  simulated: boolean
  generated: boolean
  cacheUsedBytes: number | null
  cacheSizeBytes: number | null
  cacheHeld: unknown
  silentSince: string | null
  lost: unknown
  failedCause: string | null
  edge: WaitEdgeJson
}

/**
 * In one statement: each relation would be a separate round trip, and a page of devices names few sites, collections
 * and vDisks.
 */
export async function nameDevices(
  { db, clock, actor }: Pick<ServiceContext, 'db' | 'clock' | 'actor'>,
  rows: Pick<DeviceSummaryRow, 'id' | 'siteId' | 'collectionId' | 'vdiskId' | 'homeEdgeId' | 'lastBootId'>[],
): Promise<DeviceNames> {
  if (rows.length === 0) return new DeviceNames([])
  const own = Prisma.sql`organization_id = ${actor.organizationId}::uuid`
  const among = (ids: (string | null)[]) => Prisma.sql`any(${[...new Set(ids.filter((id) => id !== null))]}::uuid[])`
  const collections = among(rows.map(({ collectionId }) => collectionId))
  const boots = among(rows.map(({ lastBootId }) => lastBootId))
  const shownSince = new Date(clock().getTime() - powerOrderShownMs)
  return new DeviceNames(
    await db.$queryRaw`
      select 'site' as kind, id, jsonb_build_object('name', name) as value from site
        where ${own} and id = ${among(rows.map(({ siteId }) => siteId))}
      union all select 'collection', id, jsonb_build_object('name', name, 'vdiskId', vdisk_id) from collection
        where ${own} and id = ${collections}
      union all select 'vdisk', id, jsonb_build_object('name', name, 'versions', ${choicesJson},
          'keepsWrites', write_cache in ('edge_persistent', 'private')) from vdisk
        where ${own} and id = any(${rows.flatMap(({ vdiskId }) => vdiskId ?? [])}::uuid[]
          || array(select vdisk_id from collection where ${own} and id = ${collections}))
      union all (select distinct on (device_id) 'order', device_id, jsonb_build_object('id', id, 'order', "order",
          'requestedAt', requested_at, 'expiresAt', expires_at, 'takenAt', taken_at) from power_order
        where ${own} and device_id = ${among(rows.map(({ id }) => id))} and requested_at > ${shownSince}
        order by device_id, requested_at desc, id desc)
      union all select 'boot', boot.id, jsonb_build_object('startedAt', boot.started_at, 'updatedAt', boot.updated_at,
          'outcome', boot.outcome, 'totalUs', boot.total_us, 'simulated', boot.simulated, 'generated', boot.generated,
          'cacheUsedBytes', boot.write_cache_used_bytes, 'cacheSizeBytes', boot.write_cache_size_bytes,
          'cacheHeld', boot.write_cache_held, 'silentSince', boot.silent_since, 'lost', boot.lost,
          'failedCause', boot.failed_cause, 'edge', jsonb_build_object('id', boot.edge_id, 'name', coalesce(edge.name, '(removed)'),
            'heartbeatAt', edge.heartbeat_at, 'revokedAt', edge.revoked_at))
        from boot_key as key join boot on boot.organization_id = key.organization_id and boot.id = key.boot_id
          and boot.received_on = key.received_on
        left join edge on edge.organization_id = boot.organization_id and edge.id = boot.edge_id
        where key.${own} and key.boot_id = ${boots}
      union all select 'home', edge.id, ${waitEdgeJson} from edge
        where ${own} and id = ${among(rows.map(({ homeEdgeId }) => homeEdgeId))}
      union all select 'wait', boot_id, ${waitsJson} from boot_wait where ${own} and boot_id = ${boots}
      union all (select distinct on (taken_boot_id) 'taken', taken_boot_id, jsonb_build_object('order', "order", 'takenAt', taken_at)
        from power_order where ${own} and taken_boot_id = ${boots} and taken_at is not null
        order by taken_boot_id, taken_at desc)`,
  )
}

/** The device's own vDisk, otherwise its collection's; null for one without a version for it. */
function vdiskOf(
  row: Pick<DeviceSummaryRow, 'id' | 'deviceType' | 'vdiskId' | 'collectionId'>,
  { names, now }: { names: DeviceNames; now: Date },
): DeviceSummary['vdisk'] {
  const own = names.get('vdisk', row.vdiskId)
  const id = own ? row.vdiskId : (names.get('collection', row.collectionId)?.vdiskId ?? null)
  const vdisk = own ?? names.get('vdisk', id)
  if (id === null || !vdisk) return null
  const version = versionFor(resolvedOf(vdisk.versions, now), row)
  return version && { id, name: vdisk.name, versionNumber: version.number }
}

export function deviceSummaryOf(
  row: DeviceSummaryRow,
  { names, now }: { names: DeviceNames; now: Date },
): DeviceSummary {
  const boot = names.get('boot', row.lastBootId)
  const order = names.get('order', row.id)
  return {
    id: row.id,
    name: row.name,
    mac: row.mac,
    enabled: row.enabled,
    deviceType: row.deviceType,
    tags: row.tags,
    revision: row.revision,
    siteId: row.siteId,
    siteName: names.get('site', row.siteId)?.name ?? '',
    collectionId: row.collectionId,
    collectionName: names.get('collection', row.collectionId)?.name ?? '',
    vdisk: vdiskOf(row, { names, now }),
    lastBoot:
      row.lastBootId && row.lastBootStartedAt && boot
        ? {
            id: row.lastBootId,
            startedAt: row.lastBootStartedAt.toISOString(),
            outcome: row.lastBootOutcome,
            totalUs: Number(row.lastBootTotalUs ?? 0n),
            simulated: boot.simulated,
            generated: boot.generated,
            writeCache: writeCacheOfBoot(boot),
            reportedAt: isoOf(boot.updatedAt),
          }
        : null,
    now: boot ? stateOf(boot, { taken: names.get('taken', row.lastBootId), now }) : { state: 'unknown', since: null },
    waitsFor: waitOf(row, { names, now }),
    keyLabel: row.keyLabel,
    claimedKey: fingerprintOf(row.keyClaimed),
    powerOrder: order ? powerOrderViewOf(order, now) : null,
  }
}

function writeCacheOfBoot({ cacheUsedBytes, cacheSizeBytes, cacheHeld }: NamedBoot): WriteCacheView | null {
  if (cacheUsedBytes === null || cacheSizeBytes === null) return null
  return writeCacheOf({ usedBytes: cacheUsedBytes, sizeBytes: cacheSizeBytes }, cacheHeld)
}

/** Also for a device that has not booted: it does not start while its write owner is away. */
function waitOf(row: DeviceSummaryRow, { names, now }: { names: DeviceNames; now: Date }): DeviceWait | null {
  const boot = names.get('boot', row.lastBootId)
  const reported = names.get('wait', row.lastBootId)
  const home = keepsWrites(row, names) ? names.get('home', row.homeEdgeId) : undefined
  return deviceWaitOf(
    {
      reported: reported ? reportedWaitOf(reported) : null,
      boot: boot
        ? {
            outcome: boot.outcome,
            failedCause: boot.failedCause,
            generated: boot.generated,
            held: boot.cacheHeld,
            silentSince: dateOf(boot.silentSince),
            lost: boot.lost,
            startedAt: new Date(boot.startedAt),
            updatedAt: new Date(boot.updatedAt),
            hasTakenOrder: names.get('taken', row.lastBootId) !== undefined,
            edge: waitEdgeOf(boot.edge),
          }
        : null,
      home: home ? waitEdgeOf(home) : null,
    },
    now,
  )
}

/** Over its boots: by its vDisk, or since it writes a version. */
function keepsWrites(row: DeviceSummaryRow, names: DeviceNames): boolean {
  const vdisk =
    names.get('vdisk', row.vdiskId) ?? names.get('vdisk', names.get('collection', row.collectionId)?.vdiskId ?? null)
  if (!vdisk || !row.enabled) return false
  return vdisk.keepsWrites || vdisk.versions.choices.maintenanceDeviceId === row.id
}

function stateOf(boot: NamedBoot, { taken, now }: { taken: Named['taken'] | undefined; now: Date }): DeviceState {
  return deviceStateOf(
    {
      startedAt: new Date(boot.startedAt),
      updatedAt: new Date(boot.updatedAt),
      outcome: boot.outcome,
      totalUs: BigInt(boot.totalUs),
      generated: boot.generated,
      silentSince: dateOf(boot.silentSince),
      takenPowerOrders: taken ? [{ order: taken.order, takenAt: new Date(taken.takenAt) }] : [],
      edge: waitEdgeOf(boot.edge),
    },
    now,
  )
}

function powerOrderViewOf(row: Named['order'], now: Date): PowerOrderView {
  const ended = new Date(row.expiresAt) <= now ? 'expired' : 'waiting'
  return {
    id: row.id,
    order: row.order,
    state: row.takenAt ? 'taken' : ended,
    requestedAt: isoOf(row.requestedAt),
    expiresAt: isoOf(row.expiresAt),
    takenAt: row.takenAt === null ? null : isoOf(row.takenAt),
  }
}

/** PostgreSQL's JSON has instants with the zone of the connection. */
function isoOf(instant: string): string {
  return new Date(instant).toISOString()
}

function dateOf(instant: string | null): Date | null {
  return instant === null ? null : new Date(instant)
}
