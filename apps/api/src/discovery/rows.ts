import type { DbTransaction, Prisma } from '@bootfarm/db'
import { lockRow } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { suggestedName } from '../rules/name-pattern.ts'
import type { DiscoveredDeviceView } from './schema.ts'

export interface SitePlace {
  organizationId: string
  siteId: string
}

export const discoveredSelect = {
  id: true,
  siteId: true,
  edgeId: true,
  mac: true,
  machineId: true,
  vendorClass: true,
  userClass: true,
  hostName: true,
  clientArch: true,
  ip: true,
  relay: true,
  asked: true,
  firstSeenAt: true,
  lastSeenAt: true,
  requests: true,
  ignoredAt: true,
  site: { select: { name: true } },
  edge: { select: { name: true } },
} satisfies Prisma.DiscoveredDeviceSelect
type DiscoveredRow = Prisma.DiscoveredDeviceGetPayload<{ select: typeof discoveredSelect }>

/** @param takenNames of the device's site */
export function discoveredViewOf(
  { site, edge, ...row }: DiscoveredRow,
  takenNames: ReadonlySet<string>,
): DiscoveredDeviceView {
  return {
    ...row,
    siteName: site.name,
    edgeName: edge.name,
    firstSeenAt: row.firstSeenAt.toISOString(),
    lastSeenAt: row.lastSeenAt.toISOString(),
    ignoredAt: row.ignoredAt?.toISOString() ?? null,
    requests: Number(row.requests),
    suggestedName: suggestedName(row, takenNames),
  }
}

/** Locks a site's discovered devices until the transaction ends, so that names and limits hold. Throws `not_found`. */
export async function lockSite(transaction: DbTransaction, { organizationId, siteId }: SitePlace): Promise<void> {
  if (!(await lockRow(transaction, 'site', { organizationId, id: siteId, strength: 'no key update' })))
    throw new AppError('not_found')
}

/** A registered device is no longer a discovered one. */
export async function forgetDiscovered(
  transaction: DbTransaction,
  { organizationId, siteId }: SitePlace,
  macs: string[],
): Promise<void> {
  await transaction.discoveredDevice.deleteMany({ where: { organizationId, siteId, mac: { in: macs } } })
}

export async function namesOfSite(
  transaction: DbTransaction,
  { organizationId, siteId }: SitePlace,
): Promise<Set<string>> {
  const rows = await transaction.device.findMany({
    where: { organizationId, siteId },
    select: { name: true },
  })
  return new Set(rows.map(({ name }) => name))
}
