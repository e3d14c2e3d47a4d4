import { sessionView } from '../../domain/session-view.ts'
import { procedure, router } from '../trpc.ts'

export const sessionRouter = router({
  me: procedure
    .meta({ minimumRole: 'viewer' })
    .output(sessionView)
    .query(({ ctx: { actor } }) => ({
      user: { id: actor.userId, name: actor.userName, email: actor.userEmail },
      organization: { id: actor.organizationId, name: actor.organizationName },
      role: actor.role,
    })),
})
