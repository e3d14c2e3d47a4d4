import { hashPassword } from 'better-auth/crypto'
import { openProcedure, router } from '../http/trpc/trpc.ts'
import { acceptedView } from '../organization/schema.ts'
import { setupInput, setupView, tokenInput } from './schema.ts'
import { completeSetup, getSetup } from './setup-link.ts'

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
