import { sessionView, sessionViewOf } from '../../domain/session-view.ts'
import { procedure, router } from '../trpc.ts'

export const sessionRouter = router({
  me: procedure
    .meta({
      permission: 'organization.read',
      place: 'visible',
      rest: { method: 'GET', path: '/session', summary: 'Who calls, and what it may do' },
    })
    .output(sessionView)
    .query(({ ctx: { actor } }) => sessionViewOf(actor)),
})
