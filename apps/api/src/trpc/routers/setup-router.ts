import { hashPassword } from 'better-auth/crypto'
import { acceptedView, setupInput, setupView, tokenInput } from '../../domain/member-view.ts'
import { completeSetup, getSetup } from '../../services/setup/setup-link.ts'
import { openProcedure, router } from '../trpc.ts'

const ofLinks = { excluded: 'it belongs to the page that the one-time link opens' }

export const setupRouter = router({
  get: openProcedure
    .meta({ who: 'anyone', rest: ofLinks })
    .input(tokenInput)
    .output(setupView)
    .query(({ ctx, input }) => getSetup(ctx, input)),
  complete: openProcedure
    .meta({ who: 'anyone', rest: ofLinks })
    .input(setupInput)
    .output(acceptedView)
    .mutation(({ ctx, input }) => completeSetup({ ...ctx, hashPassword }, input)),
})
