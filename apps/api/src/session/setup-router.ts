import { hashPassword } from 'better-auth/crypto'
import { openProcedure, router } from '../http/trpc/trpc.ts'
import { acceptedView, setupInput, setupView, tokenInput } from '../member/schema.ts'
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
