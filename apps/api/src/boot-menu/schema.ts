import { bootMenu } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { instantOf, listSort, text } from '../rules/list-sort.ts'
import { nameOf, pageInput, pageOf, searchInput, seenRevision } from '../rules/object-fields.ts'
import { count, uuid } from '../rules/scalars.ts'

const menuEntriesMax = 16
/** The limit of a desired state. */
export const menusPerFarmMax = 256
const menuTitleLengthMax = 64

const name = nameOf('Enter a name for the menu.')
/** Loaders draw it, and their fonts have no other characters. */
const title = z
  .string()
  .trim()
  .min(1, 'Enter a title for each entry.')
  .max(menuTitleLengthMax, `A title can have at most ${menuTitleLengthMax} characters.`)
  .regex(/^[\x20-\x7e]*$/, 'Boot loaders show plain ASCII letters, digits and signs only.')

/** Null version: the newest that the vDisk has when a device starts. */
const startsVersion = z.object({ kind: z.literal('version'), vdiskId: uuid, versionId: uuid.nullable() })
const startsLocalDisk = z.object({ kind: z.literal('local_disk') })

const menuFields = {
  name,
  timeoutMs: bootMenu.shape.timeoutMs,
  entries: z
    .array(z.object({ title, starts: z.discriminatedUnion('kind', [startsVersion, startsLocalDisk]) }))
    .min(1, 'Add at least one entry.')
    .max(menuEntriesMax, `A menu can have at most ${menuEntriesMax} entries.`),
  defaultEntry: count.describe('Index into `entries`.'),
}
interface MenuChoice {
  entries: unknown[]
  defaultEntry: number
}
const hasDefault = ({ entries, defaultEntry }: MenuChoice) => defaultEntry < entries.length
const noDefault = { path: ['defaultEntry'], message: 'The default must be one of the entries.' }

export const createMenuInput = z.object({ farmId: uuid, ...menuFields }).refine(hasDefault, noDefault)
export const updateMenuInput = z
  .object({
    menuId: uuid,
    revision: seenRevision.describe(
      "The revision of the menu that was read: another person's change in between is not overwritten.",
    ),
    ...menuFields,
  })
  .refine(hasDefault, noDefault)
export type MenuFields = Pick<z.output<typeof createMenuInput>, keyof typeof menuFields>

export const menuSort = listSort(
  { name: text('name'), createdAt: instantOf('createdAt'), updatedAt: instantOf('updatedAt') },
  'name',
)
export const menuListInput = z.object({
  ...pageInput,
  sort: menuSort.input,
  farmId: uuid.optional(),
  siteId: uuid.optional().describe('The menus that its collections and devices may show: those of its farm.'),
  ...searchInput,
})
export const menuGetInput = z.object({ menuId: uuid })

const menuSummary = z
  .object({
    id: uuid,
    farmId: uuid,
    farmName: z.string(),
    name: z.string(),
    timeoutMs: count,
    entryCount: count,
    defaultTitle: z.string(),
    collectionCount: count.describe(
      "Collections with this menu, and devices that chose it themselves: a collection's devices are not counted here.",
    ),
    deviceCount: count,
    updatedAt: z.iso.datetime(),
    revision: seenRevision,
  })
  .meta({ id: 'BootMenuSummary' })
export type MenuSummary = z.infer<typeof menuSummary>
export const menuPage = pageOf(menuSummary)

const place = { id: uuid, name: z.string(), siteName: z.string() }

export const menuDetail = menuSummary
  .extend({
    defaultEntry: count,
    entries: z.array(
      z.object({
        title: z.string(),
        starts: z.discriminatedUnion('kind', [
          startsVersion.extend({
            vdiskName: z.string(),
            versionNumber: count
              .nullable()
              .describe(
                'The version that it boots now; null if the vDisk has none, so that devices do not show the entry.',
              ),
          }),
          startsLocalDisk,
        ]),
      }),
    ),
    collections: z.array(z.object({ ...place, deviceCount: count })).describe('At most 100 each, by name.'),
    devices: z.array(z.object(place)),
  })
  .meta({ id: 'BootMenu' })
export type MenuDetail = z.infer<typeof menuDetail>

export const menuChoicesInput = z.object({ farmId: uuid })
/** The versions that entries can start: the farm's vDisks by name with their newest versions. Long lists are cut. */
export const menuChoices = z
  .array(z.object({ id: uuid, name: z.string(), versions: z.array(z.object({ id: uuid, number: count })) }))
  .meta({ id: 'BootMenuChoices' })

export const menuReference = z.object({ id: uuid, name: z.string() })

export const setMenuOfCollectionInput = z.object({ collectionId: uuid, menuId: uuid.nullable() })
export const setMenuOfDeviceInput = z.object({
  deviceId: uuid,
  menu: z.discriminatedUnion('choice', [
    z.object({ choice: z.literal('collection') }),
    z.object({ choice: z.literal('none') }),
    z.object({ choice: z.literal('own'), menuId: uuid }),
  ]),
})
export const chosenMenu = z.object({ menu: menuReference.nullable() }).meta({ id: 'ChosenBootMenu' })

/** Which menu a device shows. */
export const deviceMenuView = z.object({
  choice: z
    .enum(['collection', 'none', 'own'])
    .describe("`collection`: its collection's, if that has one; `none`: none; `own`: the one that it names."),
  ofCollection: menuReference.nullable(),
  shown: menuReference.nullable().describe('The result of the choice.'),
})
export type DeviceMenuView = z.infer<typeof deviceMenuView>
