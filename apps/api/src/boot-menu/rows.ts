import type { Prisma } from '@bootfarm/db'
import { visibleCollections, visibleDevices } from '../access/visible.ts'
import { byName } from '../context/keyset.ts'
import type { Actor } from '../rules/actor.ts'
import type { Fields } from '../rules/audit-change.ts'
import { resolveVersions } from '../rules/device/version-access.ts'
import { versionChoicesSelect, versionFactsSelect } from '../vdisk/public.ts'
import type { DeviceMenuView, MenuDetail, MenuSummary } from './schema.ts'

const usersShownMax = 100

/** Of the collections and devices that show a menu, the actor sees those of his places. */
export function menuSummarySelect(actor: Actor) {
  const users = {
    collections: { where: visibleCollections(actor) },
    devices: { where: visibleDevices(actor) },
  }
  return {
    id: true,
    farmId: true,
    name: true,
    timeoutMs: true,
    defaultPosition: true,
    createdAt: true,
    updatedAt: true,
    revision: true,
    farm: { select: { name: true } },
    entries: { orderBy: { position: 'asc' }, select: { title: true } },
    _count: { select: users },
  } satisfies Prisma.BootMenuSelect
}

export function menuDetailSelect(actor: Actor) {
  return {
    ...menuSummarySelect(actor),
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
      where: visibleCollections(actor),
      orderBy: byName,
      take: usersShownMax,
      select: {
        id: true,
        name: true,
        site: { select: { name: true } },
        _count: { select: { devices: { where: { bootMenuChoice: 'collection', AND: [visibleDevices(actor)] } } } },
      },
    },
    devices: {
      where: visibleDevices(actor),
      orderBy: byName,
      take: usersShownMax,
      select: { id: true, name: true, site: { select: { name: true } } },
    },
  } satisfies Prisma.BootMenuSelect
}

type SummaryRow = Prisma.BootMenuGetPayload<{ select: ReturnType<typeof menuSummarySelect> }>
type DetailRow = Prisma.BootMenuGetPayload<{ select: ReturnType<typeof menuDetailSelect> }>

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
