import type { DbTransaction } from '@bootfarm/db'
import type { z } from 'zod'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { deviceMenuOf, deviceMenuSelect } from './rows.ts'
import type { chosenMenu, setMenuOfCollectionInput, setMenuOfDeviceInput } from './schema.ts'

type Chosen = z.infer<typeof chosenMenu>

const ofPlace = { site: { select: { farmId: true } } } as const
const ofMenu = { select: { name: true } } as const

/**
 * Sets the menu for devices of the collection without their own choice. Throws `not_found`; `invalid` if its farm has
 * no such menu.
 */
export async function chooseMenuOfCollection(
  context: ServiceContext,
  { collectionId, menuId }: z.output<typeof setMenuOfCollectionInput>,
): Promise<Chosen> {
  const {
    db,
    actor: { organizationId },
  } = context
  const key = ownRow({ organizationId }, collectionId)
  return db.$transaction(async (transaction) => {
    const collection = await transaction.collection.findUnique({
      where: key,
      select: { name: true, bootMenu: ofMenu, ...ofPlace },
    })
    if (!collection) throw new AppError('not_found')
    const menu = menuId && (await menuOfFarm(transaction, organizationId, { menuId, ...collection.site }))
    await transaction.collection.update({ where: key, data: { bootMenuId: menuId }, select: { id: true } })
    await recordChange(context, {
      kind: 'collection',
      id: collectionId,
      name: collection.name,
      before: { bootMenu: collection.bootMenu?.name ?? null },
      after: { bootMenu: menu ? menu.name : null },
    })
    return { menu: menu || null }
  })
}

/**
 * Sets the menu of a device instead of its collection's. @returns the result of the choice. Throws as for collections.
 */
export async function chooseMenuOfDevice(
  context: ServiceContext,
  { deviceId, menu }: z.output<typeof setMenuOfDeviceInput>,
): Promise<Chosen> {
  const {
    db,
    actor: { organizationId },
  } = context
  const key = ownRow({ organizationId }, deviceId)
  return db.$transaction(async (transaction) => {
    const device = await transaction.device.findUnique({
      where: key,
      select: { name: true, ...deviceMenuSelect, ...ofPlace },
    })
    if (!device) throw new AppError('not_found')
    const menuId = menu.choice === 'own' ? menu.menuId : null
    if (menuId) await menuOfFarm(transaction, organizationId, { menuId, ...device.site })
    const row = await transaction.device.update({
      where: key,
      data: { bootMenuChoice: menu.choice, bootMenuId: menuId },
      select: deviceMenuSelect,
    })
    await recordChange(context, {
      kind: 'device',
      id: deviceId,
      name: device.name,
      before: auditOf(device),
      after: auditOf(row),
    })
    return { menu: deviceMenuOf(row).shown }
  })
}

function auditOf({ bootMenuChoice, bootMenu }: { bootMenuChoice: string; bootMenu: { name: string } | null }) {
  return { bootMenu: bootMenuChoice === 'own' ? (bootMenu?.name ?? null) : bootMenuChoice }
}

/** Locked until the transaction ends, so that it is not removed meanwhile. */
async function menuOfFarm(
  transaction: DbTransaction,
  organizationId: string,
  { menuId, farmId }: { menuId: string; farmId: string },
): Promise<{ id: string; name: string }> {
  const [menu] = await transaction.$queryRaw<{ id: string; name: string }[]>`
    select id, name from boot_menu where organization_id = ${organizationId}::uuid and farm_id = ${farmId}::uuid
      and id = ${menuId}::uuid for share`
  if (!menu) throw new AppError('invalid', { public: 'The farm has no such boot menu.' })
  return menu
}
