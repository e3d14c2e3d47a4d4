import type { Prisma } from '@bootfarm/db'
import { byName } from '../context/keyset.ts'
import type { Fields } from '../rules/audit-change.ts'
import { resolveVersions } from '../rules/version-access.ts'
import { versionChoicesSelect, versionFactsSelect } from '../vdisk/public.ts'
import type { DeviceMenuView, MenuDetail, MenuSummary } from './schema.ts'

const usersShownMax = 100

export const menuSummarySelect = {
  id: true,
  farmId: true,
  name: true,
  timeoutMs: true,
  defaultPosition: true,
  updatedAt: true,
  revision: true,
  farm: { select: { name: true } },
  entries: { orderBy: { position: 'asc' }, select: { title: true } },
  _count: { select: { collections: true, devices: true } },
} satisfies Prisma.BootMenuSelect

export const menuDetailSelect = {
  ...menuSummarySelect,
  entries: {
    orderBy: { position: 'asc' },
    select: {
      title: true,
      vdiskId: true,
      versionId: true,
      vdisk: { select: { name: true, ...versionChoicesSelect, versions: { select: versionFactsSelect } } },
      version: { select: { number: true } },
    },
  },
  collections: {
    orderBy: byName,
    take: usersShownMax,
    select: {
      id: true,
      name: true,
      site: { select: { name: true } },
      _count: { select: { devices: { where: { bootMenuChoice: 'collection' } } } },
    },
  },
  devices: {
    orderBy: byName,
    take: usersShownMax,
    select: { id: true, name: true, site: { select: { name: true } } },
  },
} satisfies Prisma.BootMenuSelect

type SummaryRow = Prisma.BootMenuGetPayload<{ select: typeof menuSummarySelect }>
type DetailRow = Prisma.BootMenuGetPayload<{ select: typeof menuDetailSelect }>

export function menuSummaryOf(row: SummaryRow): MenuSummary {
  return {
    id: row.id,
    farmId: row.farmId,
    farmName: row.farm.name,
    name: row.name,
    timeoutMs: row.timeoutMs,
    entryCount: row.entries.length,
    defaultTitle: row.entries[row.defaultPosition]?.title ?? '',
    collectionCount: row._count.collections,
    deviceCount: row._count.devices,
    updatedAt: row.updatedAt.toISOString(),
    revision: row.revision,
  }
}

export function menuDetailOf(row: DetailRow, now: Date): MenuDetail {
  return {
    ...menuSummaryOf(row),
    defaultEntry: row.defaultPosition,
    entries: row.entries.map(({ title, vdiskId, versionId, vdisk, version }) => ({
      title,
      starts:
        vdiskId && vdisk
          ? {
              kind: 'version',
              vdiskId,
              versionId,
              vdiskName: vdisk.name,
              versionNumber: version?.number ?? resolveVersions(vdisk, vdisk.versions, now).production?.number ?? null,
            }
          : { kind: 'local_disk' },
    })),
    collections: row.collections.map(({ id, name, site, _count }) => ({
      id,
      name,
      siteName: site.name,
      deviceCount: _count.devices,
    })),
    devices: row.devices.map(({ id, name, site }) => ({ id, name, siteName: site.name })),
  }
}

/** The part of a menu that the audit log keeps. */
export function auditOfMenu({ name, timeoutMs, defaultTitle, entries }: MenuDetail): Fields {
  return {
    name,
    timeoutMs,
    defaultEntry: defaultTitle,
    entries: entries.map(({ title, starts }) => {
      if (starts.kind === 'local_disk') return `${title}: local disk`
      return `${title}: ${starts.vdiskName} version ${starts.versionId ? starts.versionNumber : 'newest'}`
    }),
  }
}

const menuReferenceSelect = { select: { id: true, name: true } } as const

/** The fields that decide which menu a device shows. */
export const deviceMenuSelect = {
  bootMenuChoice: true,
  bootMenu: menuReferenceSelect,
  collection: { select: { bootMenu: menuReferenceSelect } },
} satisfies Prisma.DeviceSelect
type DeviceMenuRow = Prisma.DeviceGetPayload<{ select: typeof deviceMenuSelect }>

export function deviceMenuOf(row: DeviceMenuRow): DeviceMenuView {
  const ofCollection = row.collection.bootMenu
  const shown = { collection: ofCollection, none: null, own: row.bootMenu }[row.bootMenuChoice]
  return { choice: row.bootMenuChoice, ofCollection, shown }
}
