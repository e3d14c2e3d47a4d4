import { procedure, router } from '../http/trpc/trpc.ts'
import { removedObject } from '../rules/changed-object.ts'
import { getMenu, getMenuChoices, listMenus } from './read-menus.ts'
import { createMenu, removeMenu, updateMenu } from './save-menu.ts'
import {
  createMenuInput,
  menuChoices,
  menuChoicesInput,
  menuDetail,
  menuGetInput,
  menuListInput,
  menuPage,
  updateMenuInput,
} from './schema.ts'

export const bootMenuRouter = router({
  list: procedure
    .meta({
      permission: 'boot_menu.read',
      place: 'visible',
      rest: { method: 'GET', path: '/boot-menus', summary: 'Boot menus' },
    })
    .input(menuListInput)
    .output(menuPage)
    .query(({ ctx, input }) => listMenus(ctx, input)),
  get: procedure
    .meta({
      permission: 'boot_menu.read',
      place: { kind: 'boot_menu', id: 'menuId' },
      rest: { method: 'GET', path: '/boot-menus/{menuId}', summary: 'A boot menu' },
    })
    .input(menuGetInput)
    .output(menuDetail)
    .query(({ ctx, input }) => getMenu(ctx, input.menuId)),
  choices: procedure
    .meta({
      permission: 'boot_menu.read',
      place: { kind: 'farm', id: 'farmId' },
      rest: {
        method: 'GET',
        path: '/farms/{farmId}/boot-menu-choices',
        summary: 'vDisks and versions that boot menus of a farm can start',
      },
    })
    .input(menuChoicesInput)
    .output(menuChoices)
    .query(({ ctx, input }) => getMenuChoices(ctx, input.farmId)),
  create: procedure
    .meta({
      permission: 'boot_menu.change',
      place: { kind: 'farm', id: 'farmId' },
      rest: {
        method: 'POST',
        path: '/farms/{farmId}/boot-menus',
        summary: 'Create a boot menu',
        creates: '/boot-menus/{id}',
      },
    })
    .input(createMenuInput)
    .output(menuDetail)
    .mutation(({ ctx, input }) => createMenu(ctx, input)),
  update: procedure
    .meta({
      permission: 'boot_menu.change',
      place: { kind: 'boot_menu', id: 'menuId' },
      rest: { method: 'PUT', path: '/boot-menus/{menuId}', summary: 'Replace a boot menu' },
    })
    .input(updateMenuInput)
    .output(menuDetail)
    .mutation(({ ctx, input }) => updateMenu(ctx, input)),
  remove: procedure
    .meta({
      permission: 'boot_menu.change',
      place: { kind: 'boot_menu', id: 'menuId' },
      rest: { method: 'DELETE', path: '/boot-menus/{menuId}', summary: 'Delete a boot menu', silent: true },
    })
    .input(menuGetInput)
    .output(removedObject)
    .mutation(({ ctx, input }) => removeMenu(ctx, input.menuId)),
})
