import { Prisma } from '@bootfarm/db'
import type { TrashKind } from './schema.ts'

interface TrashTable {
  /** Key in `Deletion.counts`. */
  noun: string
  table: Prisma.Sql
  /** The rows that are deleted with an `object` of each kind. */
  within: Partial<Record<TrashKind, Prisma.Sql>>
}

const own = Prisma.sql`id = object.id`
const ofFarm = Prisma.sql`farm_id = object.id`
const ofSite = Prisma.sql`site_id = object.id`
const ofSitesOfFarm = Prisma.sql`site_id in (select site.id from site
  where site.organization_id = object.organization_id and site.farm_id = object.id)`
const ofVdisksOfFarm = Prisma.sql`vdisk_id in (select vdisk.id from vdisk
  where vdisk.organization_id = object.organization_id and vdisk.farm_id = object.id)`

/** All tables whose rows can be in the trash; children follow their parents. */
export const trashTables: TrashTable[] = [
  { noun: 'farm', table: Prisma.sql`farm`, within: { farm: own } },
  { noun: 'site', table: Prisma.sql`site`, within: { farm: ofFarm, site: own } },
  { noun: 'store', table: Prisma.sql`store`, within: { farm: ofFarm, store: own } },
  { noun: 'vDisk', table: Prisma.sql`vdisk`, within: { farm: ofFarm, vdisk: own } },
  {
    noun: 'version',
    table: Prisma.sql`vdisk_version`,
    within: { farm: ofVdisksOfFarm, vdisk: Prisma.sql`vdisk_id = object.id`, version: own },
  },
  { noun: 'boot menu', table: Prisma.sql`boot_menu`, within: { farm: ofFarm } },
  {
    noun: 'collection',
    table: Prisma.sql`collection`,
    within: { farm: ofSitesOfFarm, site: ofSite, collection: own },
  },
  {
    noun: 'device',
    table: Prisma.sql`device`,
    within: {
      farm: ofSitesOfFarm,
      site: ofSite,
      collection: Prisma.sql`collection_id = object.id`,
      device: own,
    },
  },
]
