import type { DbTransaction } from '@bootfarm/db'
import type { z } from 'zod'
import { requireCurrent } from '../access/require-current.ts'
import { lockRow, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { getMenu } from './read-menus.ts'
import { auditOfMenu, menuDetailOf, menuDetailSelect } from './rows.ts'
import {
  type createMenuInput,
  type MenuDetail,
  type MenuFields,
  menusPerFarmMax,
  type updateMenuInput,
} from './schema.ts'

/**
 * Throws `not_found` for the farm, `invalid` for what an entry names, `conflict` for a taken name or too many menus.
 */
export async function createMenu(
  context: ServiceContext,
  { farmId, ...menu }: z.output<typeof createMenuInput>,
): Promise<MenuDetail> {
  const {
    db,
    clock,
    actor: { organizationId },
  } = context
  const now = clock()
  return db.$transaction(async (transaction) => {
    // Locked, so that two at once neither take one name nor pass the limit.
    const farm = await lockRow(transaction, 'farm', { organizationId, id: farmId, strength: 'update' })
    if (!farm) throw new AppError('not_found')
    const place = { organizationId, farmId }
    await requireFreeName(transaction, place, { name: menu.name })
    if ((await transaction.bootMenu.count({ where: place })) >= menusPerFarmMax)
      throw new AppError('conflict', { public: `A farm can have at most ${menusPerFarmMax} boot menus.` })
    const entries = await entryRows(transaction, place, menu)
    const row = await transaction.bootMenu.create({
      data: { ...place, ...columnsOf(menu), createdAt: now, updatedAt: now, entries: { create: entries } },
      select: menuDetailSelect(context.actor),
    })
    const made = menuDetailOf(row, clock())
    const object = { kind: 'boot_menu', id: made.id, name: made.name }
    await recordChange(context, { ...object, before: null, after: auditOfMenu(made) })
    return made
  })
}

/** Like `createMenu`; `conflict` also if somebody else has changed it meanwhile. */
export async function updateMenu(
  context: ServiceContext,
  { menuId, revision, ...menu }: z.output<typeof updateMenuInput>,
): Promise<MenuDetail> {
  const {
    db,
    clock,
    actor: { organizationId },
  } = context
  const key = ownRow({ organizationId }, menuId)
  return db.$transaction(async (transaction) => {
    const { farmId } = await requireCurrent(context, { kind: 'boot_menu', id: menuId, revision })
    const before = await getMenu(context, menuId)
    const place = { organizationId, farmId: farmId ?? '' }
    await requireFreeName(transaction, place, { name: menu.name, menuId })
    const entries = await entryRows(transaction, place, menu)
    await transaction.bootMenuEntry.deleteMany({ where: { organizationId, menuId } })
    const row = await transaction.bootMenu.update({
      where: key,
      // Later than before also where the clock stands, so that the next one to save notices.
      data: {
        ...columnsOf(menu),
        updatedAt: new Date(Math.max(clock().getTime(), Date.parse(before.updatedAt) + 1)),
        entries: { create: entries },
      },
      select: menuDetailSelect(context.actor),
    })
    const after = menuDetailOf(row, clock())
    const object = { kind: 'boot_menu', id: menuId, name: after.name }
    await recordChange(context, { ...object, before: auditOfMenu(before), after: auditOfMenu(after) })
    return after
  })
}

function columnsOf({ name, timeoutMs, defaultEntry }: MenuFields) {
  return { name, timeoutMs, defaultPosition: defaultEntry }
}

interface Farm {
  organizationId: string
  farmId: string
}

async function requireFreeName(
  transaction: DbTransaction,
  { organizationId, farmId }: Farm,
  { name, menuId }: { name: string; menuId?: string },
): Promise<void> {
  const taken = await transaction.bootMenu.findUnique({
    where: { organizationId_farmId_name: { organizationId, farmId, name } },
    select: { id: true },
  })
  if (taken && taken.id !== menuId)
    throw new AppError('conflict', { public: `This farm already has a boot menu named ${name}.` })
}

/** Held against the farm's own vDisks and versions: a foreign id is refused like one that there is not. */
async function entryRows(transaction: DbTransaction, { organizationId, farmId }: Farm, { entries }: MenuFields) {
  const ids = entries.flatMap(({ starts }) => (starts.kind === 'version' ? [starts.vdiskId] : []))
  const vdisks = await transaction.vdisk.findMany({
    where: { organizationId, farmId, id: { in: ids } },
    select: { id: true, versions: { where: { sealedAt: { not: null } }, select: { id: true } } },
  })
  const versionsOf = new Map(vdisks.map(({ id, versions }) => [id, new Set(versions.map((one) => one.id))]))
  return entries.map(({ title, starts }, position) => {
    if (starts.kind === 'local_disk') return { position, title }
    const { vdiskId, versionId } = starts
    const versions = versionsOf.get(vdiskId)
    if (!versions) throw refusal(title, 'a vDisk that does not belong to this farm')
    if (versionId !== null && !versions.has(versionId))
      throw refusal(title, 'a version that does not belong to its vDisk')
    return { position, title, vdiskId, versionId }
  })
}

function refusal(title: string, what: string): AppError {
  return new AppError('invalid', { public: `The entry "${title}" names ${what}.` })
}

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
    await recordChange(context, { kind: 'boot_menu', id: menuId, name: menu.name, before, after: null })
    return { removed: true }
  })
}

function usersText(noun: string, count: number, name: string | undefined): string | null {
  if (count === 0 || name === undefined) return null
  return count === 1 ? `the ${noun} ${name}` : `${count} ${noun}s (${name} first)`
}
