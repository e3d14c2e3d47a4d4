import { procedure, router } from '../http/trpc/trpc.ts'
import { acknowledgeAlert } from './acknowledge-alert.ts'
import { countOpenAlerts, getAlert, listAlerts, readOpenCauses } from './read-alerts.ts'
import {
  acknowledgeAlertInput,
  alertInput,
  alertListInput,
  alertPage,
  alertView,
  openAlertCount,
  openCausesView,
  subscribeInput,
  subscriptionView,
} from './schema.ts'
import { getSubscription, subscribe } from './subscription.ts'

const read = { permission: 'alert.read', place: 'visible' } as const
const ofAlert = { kind: 'alert', id: 'alertId' } as const
const ownMails = { excluded: 'A person’s own mails; programs have webhooks.' }

export const alertRouter = router({
  list: procedure
    .meta({
      ...read,
      rest: {
        method: 'GET',
        path: '/alerts',
        summary: 'Alerts',
        description: 'Alerts open and close by themselves. Closed ones are kept for 90 days.',
      },
    })
    .input(alertListInput)
    .output(alertPage)
    .query(({ ctx, input }) => listAlerts(ctx, input)),
  openCount: procedure
    .meta({ ...read, rest: { method: 'GET', path: '/alert-count', summary: 'The number of open alerts' } })
    .output(openAlertCount)
    .query(({ ctx }) => countOpenAlerts(ctx)),
  openCauses: procedure
    .meta({
      ...read,
      rest: {
        method: 'GET',
        path: '/alert-causes',
        summary: 'Open alerts by cause',
        description: 'Of which causes boots fail over all sites and collections.',
      },
    })
    .output(openCausesView)
    .query(({ ctx }) => readOpenCauses(ctx)),
  get: procedure
    .meta({
      permission: 'alert.read',
      place: ofAlert,
      rest: { method: 'GET', path: '/alerts/{alertId}', summary: 'An alert' },
    })
    .input(alertInput)
    .output(alertView)
    .query(({ ctx, input }) => getAlert(ctx, input.alertId)),
  acknowledge: procedure
    .meta({
      permission: 'alert.acknowledge',
      place: ofAlert,
      rest: {
        method: 'PUT',
        path: '/alerts/{alertId}/acknowledged',
        summary: 'Acknowledge an alert, or take that back',
      },
    })
    .input(acknowledgeAlertInput)
    .output(alertView)
    .mutation(({ ctx, input }) => acknowledgeAlert(ctx, input)),
  subscription: procedure
    .meta({ ...read, rest: ownMails })
    .output(subscriptionView)
    .query(({ ctx }) => getSubscription(ctx)),
  subscribe: procedure
    .meta({ ...read, rest: ownMails })
    .input(subscribeInput)
    .output(subscriptionView)
    .mutation(({ ctx, input }) => subscribe(ctx, input)),
})
