import { Prisma } from '@bootfarm/db'
import type { PlaceKind } from '../rules/place.ts'

/** The tables of each kind, and its name for people. */
export const objectKinds = {
  farm: { table: Prisma.sql`farm`, noun: 'farm' },
  site: { table: Prisma.sql`site`, noun: 'site' },
  collection: { table: Prisma.sql`collection`, noun: 'collection' },
  device: { table: Prisma.sql`device`, noun: 'device' },
  edge: { table: Prisma.sql`edge`, noun: 'edge' },
  vdisk: { table: Prisma.sql`vdisk`, noun: 'vDisk' },
  version: { table: Prisma.sql`vdisk_version`, noun: 'version' },
  store: { table: Prisma.sql`store`, noun: 'store' },
  boot_menu: { table: Prisma.sql`boot_menu`, noun: 'boot menu' },
  schedule: { table: Prisma.sql`schedule`, noun: 'schedule' },
} as const satisfies Partial<Record<PlaceKind, { table: Prisma.Sql; noun: string }>>
