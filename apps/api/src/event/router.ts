import { procedure, router } from '../http/trpc/trpc.ts'
import { getEvent, listEvents } from './list-events.ts'
import { eventInput, eventListInput, eventPage, eventView } from './schema.ts'

const read = { permission: 'event.read', place: 'visible' } as const

export const eventRouter = router({
  list: procedure
    .meta({
      ...read,
      rest: {
        method: 'GET',
        path: '/events',
        summary: 'Events',
        description:
          'What webhooks are told, whether or not there is one. With `sort=number` no event is ever missed: each later one has a higher number. Events are kept for 30 days.',
        codes: ['cursor_expired'],
      },
    })
    .input(eventListInput)
    .output(eventPage)
    .query(({ ctx, input }) => listEvents(ctx, input)),
  get: procedure
    .meta({ ...read, rest: { method: 'GET', path: '/events/{eventId}', summary: 'An event' } })
    .input(eventInput)
    .output(eventView)
    .query(({ ctx, input }) => getEvent(ctx, input)),
})
