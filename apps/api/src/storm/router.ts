import { procedure, router } from '../http/trpc/trpc.ts'
import { getStorm } from './get-storm.ts'
import { storm, stormInput } from './schema.ts'

export const stormRouter = router({
  get: procedure
    .meta({
      permission: 'boot.read',
      place: 'visible',
      rest: { method: 'GET', path: '/storm', summary: 'Every device of a part of the organization, by phase' },
    })
    .input(stormInput)
    .output(storm)
    .query(({ ctx, input }) => getStorm(ctx, input)),
})
