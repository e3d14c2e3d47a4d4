import { ownRow } from '../context/own-row.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { getMenu } from './get-menu.ts'
import { auditOfMenu } from './rows.ts'

/** Throws `not_found`; `conflict` while a collection or a device shows it, with who that is. */
export async function removeMenu(context: ServiceContext, menuId: string): Promise<{ removed: true }> {
  const {
    db,
    actor: { organizationId },
  } = context
  return db.$transaction(async (transaction) => {
    const menu = await transaction.bootMenu.findUnique({
      where: ownRow({ organizationId }, menuId),
      select: {
        name: true,
        collections: { take: 1, orderBy: { name: 'asc' }, select: { name: true } },
        devices: { take: 1, orderBy: { name: 'asc' }, select: { name: true } },
        _count: { select: { collections: true, devices: true } },
      },
    })
    if (!menu) throw new AppError('not_found')
    const users = [
      usersText('collection', menu._count.collections, menu.collections[0]?.name),
      usersText('device', menu._count.devices, menu.devices[0]?.name),
    ].filter((text) => text !== null)
    if (users.length > 0)
      throw new AppError('conflict', {
        public: `The boot menu is used by ${users.join(' and ')}. Choose another menu or none there first.`,
      })
    const before = auditOfMenu(await getMenu(context, menuId))
    await transaction.bootMenu.delete({ where: ownRow({ organizationId }, menuId) })
    await recordChange(context, {
      kind: 'boot_menu',
      id: menuId,
      name: menu.name,
      before,
      after: null,
    })
    return { removed: true }
  })
}

function usersText(noun: string, count: number, name: string | undefined): string | null {
  if (count === 0 || name === undefined) return null
  return count === 1 ? `the ${noun} ${name}` : `${count} ${noun}s (${name} first)`
}
