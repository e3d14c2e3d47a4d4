import { type BootMenu, bootMenusMax } from '@bootfarm/proto/uplink'
import type { DbOrTransaction } from '../../context/service-context.ts'

interface MenuRow {
  id: string
  timeoutMs: number
  defaultPosition: number
  entries: { position: number; title: string; vdiskId: string | null; versionId: string | null }[]
}

/**
 * Returns the menus that the site's collections and devices show, the oldest ones if there are more than an edge
 * accepts.
 */
export function readSiteMenus(
  db: DbOrTransaction,
  { organizationId, siteId }: { organizationId: string; siteId: string },
): Promise<MenuRow[]> {
  const ofSite = { some: { organizationId, siteId } }
  return db.bootMenu.findMany({
    where: { organizationId, OR: [{ collections: ofSite }, { devices: ofSite }] },
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
    take: bootMenusMax,
    select: {
      id: true,
      timeoutMs: true,
      defaultPosition: true,
      entries: {
        orderBy: { position: 'asc' },
        select: { position: true, title: true, vdiskId: true, versionId: true },
      },
    },
  })
}

/**
 * Returns the menu in the form of a desired state: each version by its id. An entry whose vDisk has no version yet is
 * left out; if that is the default, the first remaining entry replaces it. Null if none remains.
 * @param bootedVersionOf the version that production devices boot, by vDisk
 */
export function stateMenuOf(
  { id, timeoutMs, defaultPosition, entries }: MenuRow,
  bootedVersionOf: Map<string, string | undefined>,
): BootMenu | null {
  const shown = entries.flatMap<{ position: number; entry: BootMenu['entries'][number] }>(
    ({ position, title, vdiskId, versionId }) => {
      if (vdiskId === null) return [{ position, entry: { kind: 'local_disk', title } }]
      const id = versionId ?? bootedVersionOf.get(vdiskId)
      const follows = versionId === null ? { followsVdisk: true } : {}
      return id ? [{ position, entry: { kind: 'version', title, versionId: id, ...follows } }] : []
    },
  )
  if (shown.length === 0) return null
  return {
    id,
    timeoutMs,
    defaultEntry: Math.max(
      shown.findIndex(({ position }) => position === defaultPosition),
      0,
    ),
    entries: shown.map(({ entry }) => entry),
  }
}

/** Returns the versions that its entries start. */
export function versionsOfMenu(menu: BootMenu | undefined): string[] {
  return menu?.entries.flatMap((entry) => (entry.kind === 'version' ? entry.versionId : [])) ?? []
}

/**
 * Returns the version for a device with a menu and without a vDisk of its collection: the menu's default, otherwise its
 * first version.
 */
export function versionOfMenu(menu: BootMenu | undefined): string | undefined {
  const chosen = menu?.entries[menu.defaultEntry]
  const version = chosen?.kind === 'version' ? chosen : menu?.entries.find((entry) => entry.kind === 'version')
  return version?.kind === 'version' ? version.versionId : undefined
}
