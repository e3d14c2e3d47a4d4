import { sessionView, sessionViewOf } from '../../domain/session-view.ts'
import { procedure, router } from '../trpc.ts'

export const sessionRouter = router({
  me: procedure
    .meta({ permission: 'organization.read', place: 'visible' })
    .output(sessionView)
    .query(({ ctx: { actor } }) => sessionViewOf(actor)),
})
