import { z } from 'zod'
import {
  createMenuInput,
  menuChoices,
  menuChoicesInput,
  menuDetail,
  menuGetInput,
  menuListInput,
  menuPage,
  updateMenuInput,
} from '../../domain/boot-menu-view.ts'
import { getMenu, getMenuChoices } from '../../services/boot-menu/get-menu.ts'
import { listMenus } from '../../services/boot-menu/list-menus.ts'
import { removeMenu } from '../../services/boot-menu/remove-menu.ts'
import { createMenu, updateMenu } from '../../services/boot-menu/save-menu.ts'
import { procedure, router } from '../trpc.ts'

export const bootMenuRouter = router({
  list: procedure
    .meta({ permission: 'boot_menu.read', place: 'visible' })
    .input(menuListInput)
    .output(menuPage)
    .query(({ ctx, input }) => listMenus(ctx, input)),
  get: procedure
    .meta({ permission: 'boot_menu.read', place: { kind: 'boot_menu', id: 'menuId' } })
    .input(menuGetInput)
    .output(menuDetail)
    .query(({ ctx, input }) => getMenu(ctx, input.menuId)),
  choices: procedure
    .meta({ permission: 'boot_menu.read', place: { kind: 'farm', id: 'farmId' } })
    .input(menuChoicesInput)
    .output(menuChoices)
    .query(({ ctx, input }) => getMenuChoices(ctx, input.farmId)),
  create: procedure
    .meta({ permission: 'boot_menu.change', place: { kind: 'farm', id: 'farmId' } })
    .input(createMenuInput)
    .output(menuDetail)
    .mutation(({ ctx, input }) => createMenu(ctx, input)),
  update: procedure
    .meta({ permission: 'boot_menu.change', place: { kind: 'boot_menu', id: 'menuId' } })
    .input(updateMenuInput)
    .output(menuDetail)
    .mutation(({ ctx, input }) => updateMenu(ctx, input)),
  remove: procedure
    .meta({ permission: 'boot_menu.change', place: { kind: 'boot_menu', id: 'menuId' } })
    .input(menuGetInput)
    .output(z.object({ removed: z.literal(true) }))
    .mutation(({ ctx, input }) => removeMenu(ctx, input.menuId)),
})
