import { platformProcedure, router } from '../http/trpc/trpc.ts'
import { setQuotas, setSuspended } from './change-organization.ts'
import { getPlatformHealth, listPlatformEvents, listPlatformOrganizations } from './list-organizations.ts'
import {
  platformEventPage,
  platformEventsInput,
  platformHealthView,
  platformListInput,
  platformOrganizationView,
  platformPage,
  setQuotasInput,
  setSuspendedInput,
} from './schema.ts'

const meta = {
  who: 'platform',
  rest: { excluded: 'an API key belongs to one organization, and who runs the installation to none' },
} as const

export const platformRouter = router({
  health: platformProcedure
    .meta(meta)
    .output(platformHealthView)
    .query(({ ctx }) => getPlatformHealth(ctx)),
  organizations: platformProcedure
    .meta(meta)
    .input(platformListInput)
    .output(platformPage)
    .query(({ ctx, input }) => listPlatformOrganizations(ctx, input)),
  events: platformProcedure
    .meta(meta)
    .input(platformEventsInput)
    .output(platformEventPage)
    .query(({ ctx, input }) => listPlatformEvents(ctx, input)),
  setQuotas: platformProcedure
    .meta(meta)
    .input(setQuotasInput)
    .output(platformOrganizationView)
    .mutation(({ ctx, input }) => setQuotas(ctx, input)),
  setSuspended: platformProcedure
    .meta(meta)
    .input(setSuspendedInput)
    .output(platformOrganizationView)
    .mutation(({ ctx, input }) => setSuspended(ctx, input)),
})
