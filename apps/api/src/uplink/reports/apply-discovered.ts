import { type DbTransaction, Prisma } from '@bootfarm/db'
import type { DiscoveredDevice } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge } from '../../context/service-context.ts'
import { adoptedChange, ignoredChange } from '../../discovery/ignore-discovered.ts'
import { lockSite, type SitePlace } from '../../discovery/rows.ts'
import { carryOut, planRules } from '../../discovery/run-rules.ts'
import { discoveredWaitingMax } from '../../discovery/schema.ts'
import { recordOfEdge } from '../enrol/record-of-edge.ts'

/**
 * Stores an edge's reports about devices that are not registered at its site, then applies the site's rules to those
 * that wait. A site keeps a bounded number of waiting devices, those seen last.
 * @returns whether discovered devices may have changed
 */
export async function applyDiscovered(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { devices, now }: { devices: DiscoveredDevice[]; now: Date },
): Promise<boolean> {
  const { organizationId, siteId, edgeId } = edge
  const place = { organizationId, siteId }
  await lockSite(transaction, place)
  const unknown = await withoutRegistered(transaction, place, newestOfEach(devices))
  if (unknown.length === 0) return false
  const rows = unknown.map((device) => rowOf(device, now))
  await transaction.$executeRaw`
    insert into discovered_device (organization_id, site_id, edge_id, id, mac, machine_id, vendor_class, user_class, host_name,
      client_arch, ip, relay, asked, first_seen_at, last_seen_at, requests)
    select ${organizationId}::uuid, ${siteId}::uuid, ${edgeId}::uuid, gen_random_uuid(), row.* from
      jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (mac text, machine_id uuid, vendor_class text, user_class text,
        host_name text, client_arch integer, ip text, relay text, asked "DiscoveryRequest", first_seen_at timestamptz,
        last_seen_at timestamptz, requests bigint)
    on conflict (organization_id, site_id, mac) do update set
      edge_id = excluded.edge_id, machine_id = coalesce(excluded.machine_id, discovered_device.machine_id),
      vendor_class = coalesce(excluded.vendor_class, discovered_device.vendor_class),
      user_class = coalesce(excluded.user_class, discovered_device.user_class),
      host_name = coalesce(excluded.host_name, discovered_device.host_name),
      client_arch = coalesce(excluded.client_arch, discovered_device.client_arch),
      ip = coalesce(excluded.ip, discovered_device.ip), relay = coalesce(excluded.relay, discovered_device.relay),
      asked = excluded.asked, last_seen_at = greatest(excluded.last_seen_at, discovered_device.last_seen_at),
      requests = greatest(excluded.requests, discovered_device.requests)`
  await runRules(transaction, edge, { macs: unknown.map(({ mac }) => mac), now })
  await dropOldest(transaction, place)
  return true
}

function newestOfEach(devices: DiscoveredDevice[]): DiscoveredDevice[] {
  return [...new Map(devices.map((device) => [device.mac, device])).values()]
}

async function withoutRegistered(
  transaction: DbTransaction,
  place: SitePlace,
  devices: DiscoveredDevice[],
): Promise<DiscoveredDevice[]> {
  const registered = await transaction.device.findMany({
    where: { ...place, mac: { in: devices.map(({ mac }) => mac) } },
    select: { mac: true },
  })
  const macs = new Set(registered.map(({ mac }) => mac))
  return devices.filter(({ mac }) => !macs.has(mac))
}

/** A later report of the same device finds it registered or ignored, and does nothing. */
async function runRules(
  transaction: DbTransaction,
  edge: AuthenticatedEdge,
  { macs, now }: { macs: string[]; now: Date },
): Promise<void> {
  const place = { organizationId: edge.organizationId, siteId: edge.siteId }
  const waiting = await transaction.discoveredDevice.findMany({
    where: { ...place, mac: { in: macs }, ignoredAt: null },
    orderBy: [{ firstSeenAt: 'asc' }, { mac: 'asc' }],
    select: { mac: true, vendorClass: true, clientArch: true, relay: true },
  })
  const planned = await planRules(transaction, place, waiting)
  const { adopted, ignored } = await carryOut(transaction, place, { ...planned, now })
  await recordOfEdge({ db: transaction, now }, edge, (at) => [
    ...adopted.map((device) => ({ action: 'discovered.adoptByRule', ...adoptedChange(at, device) })),
    ...ignored.map((machine) => ({ action: 'discovered.ignoreByRule', ...ignoredChange(at, machine) })),
  ])
}

async function dropOldest(transaction: DbTransaction, { organizationId, siteId }: SitePlace): Promise<void> {
  const ofSite = Prisma.sql`organization_id = ${organizationId}::uuid and site_id = ${siteId}::uuid and ignored_at is null`
  await transaction.$executeRaw`delete from discovered_device where organization_id = ${organizationId}::uuid and id in
    (select id from discovered_device where ${ofSite} order by last_seen_at desc, id desc offset ${discoveredWaitingMax})`
}

/** An edge's clock may be years ahead: nothing was seen after it was reported. */
function rowOf(device: DiscoveredDevice, now: Date) {
  const instantOf = (unixMs: number) => new Date(Math.min(unixMs, now.getTime())).toISOString()
  return {
    mac: device.mac,
    machine_id: device.machineId ?? null,
    vendor_class: device.vendorClass ?? null,
    user_class: device.userClass ?? null,
    host_name: device.hostName ?? null,
    client_arch: device.clientArch ?? null,
    ip: device.ip ?? null,
    relay: device.relay ?? null,
    asked: device.asked,
    first_seen_at: instantOf(device.firstSeenUnixMs),
    last_seen_at: instantOf(device.lastSeenUnixMs),
    requests: device.requests,
  }
}
