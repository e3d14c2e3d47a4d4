import type { VdiskDetail } from '../../domain/vdisk-view.ts'
import { AppError } from '../../errors/app-error.ts'
import type { ServiceContext } from '../service-context.ts'

/** Throws `not_found`. */
export async function getVdisk({ db, actor }: ServiceContext, vdiskId: string): Promise<VdiskDetail> {
  const row = await db.vdisk.findUnique({
    where: { organizationId_id: { organizationId: actor.organizationId, id: vdiskId } },
    select: {
      id: true,
      farmId: true,
      name: true,
      createdAt: true,
      note: true,
      revision: true,
      store: { select: { id: true, name: true } },
      _count: { select: { devices: true } },
      farm: { select: { name: true } },
      versions: {
        orderBy: { number: 'desc' },
        select: {
          id: true,
          number: true,
          sizeBytes: true,
          diskPath: true,
          kernelPath: true,
          initrdPath: true,
          commandLine: true,
          note: true,
          labels: true,
          revision: true,
          createdAt: true,
        },
      },
      menuEntries: {
        orderBy: [{ menu: { name: 'asc' } }, { menuId: 'asc' }, { position: 'asc' }],
        select: { menu: { select: { id: true, name: true } }, version: { select: { number: true } } },
      },
      collections: {
        orderBy: [{ name: 'asc' }, { id: 'asc' }],
        select: {
          id: true,
          name: true,
          site: { select: { name: true } },
          _count: { select: { devices: true } },
        },
      },
    },
  })
  if (!row) throw new AppError('not_found')
  const menus = new Map<string, VdiskDetail['menus'][number]>()
  for (const { menu, version } of row.menuEntries) {
    const known = menus.get(menu.id) ?? { ...menu, versionNumbers: [] }
    menus.set(menu.id, { ...known, versionNumbers: [...known.versionNumbers, version?.number ?? null] })
  }
  return {
    id: row.id,
    farmId: row.farmId,
    farmName: row.farm.name,
    name: row.name,
    createdAt: row.createdAt.toISOString(),
    note: row.note,
    store: row.store,
    revision: row.revision,
    deviceCount: row._count.devices,
    versions: row.versions.map((version) => ({
      ...version,
      sizeBytes: Number(version.sizeBytes),
      createdAt: version.createdAt.toISOString(),
    })),
    collections: row.collections.map((collection) => ({
      id: collection.id,
      name: collection.name,
      siteName: collection.site.name,
      deviceCount: collection._count.devices,
    })),
    menus: [...menus.values()],
  }
}
