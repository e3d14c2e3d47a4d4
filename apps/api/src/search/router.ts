import { procedure, router } from '../http/trpc/trpc.ts'
import { searchInput, searchResult } from './schema.ts'
import { searchObjects } from './search-objects.ts'

export const searchRouter = router({
  find: procedure
    .meta({
      permission: 'organization.read',
      place: 'visible',
      rest: {
        method: 'GET',
        path: '/search',
        summary: 'Search over devices, boots, vDisks, sites and people',
        description:
          'Finds what begins with the search, among all that the caller sees: each kind takes its own permission. It is no list: to read all devices of a name, use theirs.',
        codes: ['unavailable'],
      },
    })
    .input(searchInput)
    .output(searchResult)
    .query(({ ctx, input }) => searchObjects(ctx, input)),
})
