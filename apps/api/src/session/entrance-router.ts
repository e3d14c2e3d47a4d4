import { openProcedure, router } from '../http/trpc/trpc.ts'
import { acceptedView } from '../organization/schema.ts'
import { doneView } from '../rules/changed-object.ts'
import { hashPassword } from './password-hash.ts'
import {
  completeSignUpInput,
  setupInput,
  setupView,
  signUpAsked,
  signUpInput,
  signUpOfferView,
  tokenInput,
} from './schema.ts'
import { completeSetup, getSetup } from './setup-link.ts'
import { askToSignUp, completeSignUp, getSignUp } from './sign-up.ts'

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

const ofPages = { excluded: 'it belongs to the sign-up page and its mailed link' }

export const signUpRouter = router({
  ask: openProcedure
    .meta({ who: 'anyone', rest: ofPages })
    .input(signUpInput)
    .output(signUpAsked)
    .mutation(({ ctx, input }) => askToSignUp(ctx, input)),
  get: openProcedure
    .meta({ who: 'anyone', rest: ofPages })
    .input(tokenInput)
    .output(signUpOfferView)
    .query(({ ctx, input }) => getSignUp(ctx, input)),
  complete: openProcedure
    .meta({ who: 'anyone', rest: ofPages })
    .input(completeSignUpInput)
    .output(doneView)
    .mutation(({ ctx, input }) => completeSignUp({ ...ctx, hashPassword }, input)),
})
