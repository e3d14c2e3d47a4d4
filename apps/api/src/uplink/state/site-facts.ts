import type { DesiredState } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge, DbOrTransaction } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'

interface SiteFacts {
  incarnation: number
  farmId: string
  siteName: string
  unknownDevices: DesiredState['unknownDevices']
  bootProgramSet: string | null
  capture: NonNullable<DesiredState['capture']>
  cacheCopyHours: number
  /** The edge's current key, if its replacement was ordered and the edge has not reported a new one. */
  rotateKey: string | null
  /** The release that this edge is to run; null: the one that it has. */
  release: string | null
  releaseAttempt: number
  /** Null: the edge knows no sealed state. */
  sealKey: string | null
  hasMenus: boolean
  /** Devices that boot another vDisk than their collection's. */
  hasOwnVdisks: boolean
  hasIgnored: boolean
  hasOtherEdges: boolean
  hasPowerOns: boolean
  hasPowerOrders: boolean
  hasSchedules: boolean
  hasTrials: boolean
  /** For this edge only. */
  hasStoreJobs: boolean
  hasDifferences: boolean
}

/**
 * Reads the desired state's facts about the site, and which of its other parts exist at all: most sites have few of
 * them, and one change may create the states of hundreds of sites. Throws `edge_unknown` if edge or site no longer
 * exist.
 */
export async function readSiteFacts(
  db: DbOrTransaction,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  now: Date,
): Promise<SiteFacts> {
  const [facts] = await db.$queryRaw<SiteFacts[]>`
    select organization.state_incarnation as "incarnation", site.farm_id::text as "farmId", site.name as "siteName",
      site.unknown_devices::text as "unknownDevices", site.boot_program_set as "bootProgramSet", site.capture::text as "capture",
      site.cache_copy_hours as "cacheCopyHours",
      case when edge.rotate_key_from = edge.public_key then edge.public_key end as "rotateKey",
      edge.seal_key as "sealKey", edge.wanted_release as "release", edge.release_attempt as "releaseAttempt",
      exists (select from collection as c where c.organization_id = site.organization_id and c.site_id = site.id
          and c.boot_menu_id is not null)
        or exists (select from device as d where d.organization_id = site.organization_id and d.site_id = site.id
          and d.boot_menu_id is not null) as "hasMenus",
      exists (select from device as d where d.organization_id = site.organization_id and d.site_id = site.id
        and d.vdisk_id is not null) as "hasOwnVdisks",
      exists (select from discovered_device as d where d.organization_id = site.organization_id and d.site_id = site.id
        and d.ignored_at is not null) as "hasIgnored",
      exists (select from edge as other where other.organization_id = site.organization_id and other.site_id = site.id
        and other.id <> edge.id and other.revoked_at is null) as "hasOtherEdges",
      exists (select from power_on as p where p.organization_id = site.organization_id and p.expires_at > ${now}) as "hasPowerOns",
      exists (select from power_order as p where p.organization_id = site.organization_id and p.expires_at > ${now}
        and p.taken_at is null) as "hasPowerOrders",
      exists (select from schedule as s where s.organization_id = site.organization_id and s.farm_id = site.farm_id
        and (s.site_id is null or s.site_id = site.id) and s.instants <> '{}') as "hasSchedules",
      exists (select from experiment_trial as t where t.organization_id = site.organization_id and t.site_id = site.id
        and t.state = 'ordered' and t.until_at > ${now}) as "hasTrials",
      exists (select from store_job as j where j.organization_id = edge.organization_id and j.edge_id = edge.id
        and j.state in ('queued', 'running')) as "hasStoreJobs",
      exists (select from edge_difference as d where d.organization_id = edge.organization_id
        and d.edge_id = edge.id) as "hasDifferences"
    from site join organization on organization.id = site.organization_id
      join edge on edge.organization_id = site.organization_id and edge.site_id = site.id
    where site.organization_id = ${organizationId}::uuid and site.id = ${siteId}::uuid and edge.id = ${edgeId}::uuid`
  if (!facts) throw new AppError('edge_unknown')
  return facts
}

/** Orders desired states: first by the control plane's incarnation, then by the edge's counter. */
export interface StatePair {
  incarnation: number
  counter: number
}

export function parseStatePair(text: string): StatePair {
  const [incarnation, counter] = text.split('.')
  return { incarnation: Number(incarnation), counter: Number(counter) }
}

export function isLater(left: StatePair, right: StatePair): boolean {
  if (left.incarnation !== right.incarnation) return left.incarnation > right.incarnation
  return left.counter > right.counter
}
