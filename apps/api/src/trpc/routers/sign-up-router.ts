import { hashPassword } from 'better-auth/crypto'
import { doneView, tokenInput } from '../../domain/member-view.ts'
import { completeSignUpInput, signUpAsked, signUpInput, signUpOfferView } from '../../domain/organization-view.ts'
import { askToSignUp, completeSignUp, getSignUp } from '../../services/sign-up/sign-up.ts'
import { openProcedure, router } from '../trpc.ts'

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
