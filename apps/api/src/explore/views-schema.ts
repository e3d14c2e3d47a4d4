import { z } from 'zod'
import { nameOf } from '../rules/object-fields.ts'

export const savedViewsMax = 50
const pathLengthMax = 4_000

const savedView = z.object({
  name: nameOf('Enter a name for the view.').describe('Unique among the views of the person.'),
  path: z
    .string()
    .max(pathLengthMax)
    .regex(/^\/explore(\/compare)?(\?[\x21-\x7e]*)?$/, 'A view is an address of the page Explore or Compare.')
    .describe('Path and query of the page.')
    .meta({ examples: ['/explore?by=version&period=30d'] }),
})

const fields = {
  views: z
    .array(savedView)
    .max(savedViewsMax, `At most ${savedViewsMax} views are kept. Delete one first.`)
    .refine(
      (views) => new Set(views.map(({ name }) => name)).size === views.length,
      'Two views have the same name. Choose another one.',
    )
    .describe('In the order in which they are shown.'),
}
export const savedViewsInput = z.object(fields)
export const savedViewsView = z.object(fields).meta({ id: 'SavedViews' })
export type SavedViewsView = z.infer<typeof savedViewsView>
