import { inOrganization } from '@bootfarm/db'
import { initTRPC, TRPCError } from '@trpc/server'
import { ZodError } from 'zod'
import type { RequestFacts } from '../../context/service-context.ts'
import { AppError, errorTable } from '../../errors/app-error.ts'
import { toAppError } from '../../errors/to-app-error.ts'
import { recordChange } from '../../events/record-change.ts'
import { beginOnce, finishOnce } from '../../idempotency/do-once.ts'
import { requireNotSuspended } from '../../organization/require-not-suspended.ts'
import { isPlatformOperator } from '../../platform/platform-operator.ts'
import { organizationPlace } from '../../rules/place.ts'
import { inputDepthMax } from '../../rules/scalars.ts'
import { activeTrace, within } from '../../rules/tracer.ts'
import { requireConfirmed } from '../../session/confirm-session.ts'
import type { TrpcContext } from './context.ts'
import {
  changeAsAsked,
  isMemberPolicy,
  needsConfirmation,
  type OutsidePolicy,
  type ProcedurePolicy,
  placesOf,
} from './policy.ts'

const ssePingIntervalMs = 15_000
const sseReconnectAfterInactivityMs = 40_000
/** A subscription is ended and signed in again after this time, so that a revoked session ends. */
const sseDurationMsMax = 600_000

const t = initTRPC
  .context<TrpcContext>()
  .meta<ProcedurePolicy>()
  .create({
    isDev: false,
    sse: {
      ping: { enabled: true, intervalMs: ssePingIntervalMs },
      client: { reconnectAfterInactivityMs: sseReconnectAfterInactivityMs },
      maxDurationMs: sseDurationMsMax,
    },
    errorFormatter({ shape, error }) {
      const { code, message, revision } = publicError(error)
      return {
        code: shape.code,
        message,
        data: {
          code: shape.data.code,
          httpStatus: shape.data.httpStatus,
          path: shape.data.path,
          appCode: code,
          // For a stale change: the object's current revision.
          ...(revision === undefined ? {} : { revision }),
        },
      }
    },
  })

export const router = t.router

/** Before the transaction: it looks at the session, and at nothing of the organization. */
async function requireConfirmedPerson(ctx: TrpcContext): Promise<void> {
  const person = await ctx.findPerson()
  if (!person) throw new AppError('forbidden', { public: 'This requires a person. API keys are not accepted.' })
  await requireConfirmed(ctx, person)
}

/** Throws `rate_limited`. */
export function requireWithinRate({ personRates, telemetry }: TrpcContext, userId: string | null): void {
  if (userId === null || personRates.take(userId)) return
  telemetry.rateLimited('person')
  throw new AppError('rate_limited')
}

/** Errors of services get their row of the table. */
const mappedProcedure = t.procedure.use(async ({ ctx, path, next }) => {
  const endTurn = await ctx.takeTurn()
  const begin = performance.now()
  const span = ctx.tracer?.start('internal', activeTrace())
  const result = await within(span, () => next()).finally(endTurn)
  const outcome = result.ok || result.error.cause instanceof AnsweredBefore ? 'ok' : codeOf(result.error)
  ctx.telemetry.procedureEnded({ path, outcome, durationMs: performance.now() - begin })
  span?.end({
    name: path,
    attributes: { 'bootfarm.procedure.outcome': outcome },
    error: isOurFault(outcome) ? outcome : null,
  })
  if (result.ok || isCallersFault(result.error)) return result
  if (result.error.cause instanceof AnsweredBefore) return result
  throw mappedError(result.error.cause ?? result.error)
})

const anyProcedure = mappedProcedure.use(async ({ next, getRawInput }) => {
  requireWholeTexts(await getRawInput())
  return next()
})

/** A member has to be signed in, or an API key shown. */
const signedInProcedure = anyProcedure.use(async ({ ctx, meta, next, getRawInput }) => {
  if (!meta || !isMemberPolicy(meta))
    throw new AppError('forbidden', { internal: 'a procedure without a policy for members' })
  const actor = await ctx.findActor()
  if (!actor) throw new AppError('unauthenticated')
  if (actor.kind === 'person') requireWithinRate(ctx, actor.userId)
  if (meta.confirmed && needsConfirmation(meta, await getRawInput())) await requireConfirmedPerson(ctx)
  const places = placesOf(meta, meta.place === 'visible' ? undefined : await getRawInput())
  return next({ ctx: { actor, policy: meta, places } })
})

/**
 * Every query and mutation is built from this one: the policy is enforced, and all of it is one transaction in the
 * actor's organization. An error rolls everything back; nothing is answered before the commit.
 */
export const procedure = signedInProcedure.use(async ({ ctx, next, path, type, getRawInput }) => {
  const { clock, actor, policy, places } = ctx
  if (type === 'subscription') throw new AppError('internal', { internal: 'it would hold a transaction' })
  const { afterCommit, run } = workAfterCommit()
  const result = await inOrganization(ctx.db, actor.organizationId, async (db) => {
    const place = await ctx.checks.authorise({ db, actor }, policy, places)
    if (type === 'mutation') await requireNotSuspended(db, actor.organizationId)
    const request = { action: path, address: ctx.address, id: ctx.requestId, place, recordedCount: 0 }
    const context = { db, clock, actor, request }
    const once =
      ctx.idempotency && type === 'mutation'
        ? { ...ctx.idempotency, procedure: path, input: await getRawInput() }
        : null
    const before = once && (await beginOnce(context, once))
    if (before) throw new AnsweredBefore(before.answer)
    const result = await next({ ctx: { ...context, afterCommit, platform: { db: ctx.db, clock } } })
    if (!result.ok) throw result.error
    if (once) await finishOnce(context, once, result.data)
    // No change goes unrecorded: if a service records none itself, its input is recorded.
    if (type === 'mutation' && request.recordedCount === 0)
      await recordChange(context, changeAsAsked(places, await getRawInput()))
    return result
  })
  await run()
  return result
})

/** Nothing is done: the request with this Idempotency-Key went well before, with this answer. */
export class AnsweredBefore extends Error {
  readonly answer: unknown

  constructor(answer: unknown) {
    super('answered before')
    this.answer = answer
  }
}

/**
 * For work that must not hold the transaction, such as a mail: executed after the commit, in the order of the calls.
 */
function workAfterCommit() {
  const works: (() => Promise<unknown>)[] = []
  return {
    afterCommit: (work: () => Promise<unknown>) => void works.push(work),
    async run() {
      for (const work of works) await work()
    },
  }
}

/**
 * Every subscription is built from this one: the policy is enforced. It holds no transaction; its service opens one for
 * each read.
 */
export const watchingProcedure = signedInProcedure.use(async ({ ctx, next }) => {
  const { actor, policy, places } = ctx
  await inOrganization(ctx.db, actor.organizationId, (db) => ctx.checks.authorise({ db, actor }, policy, places))
  return next()
})

/** Errors between the events of a subscription get their row of the table, too. */
export async function* withMappedErrors<T>(
  { holdRefusal }: Pick<TrpcContext, 'holdRefusal'>,
  events: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncGenerator<T> {
  try {
    yield* events
  } catch (error) {
    const mapped = mappedError(error)
    if (mapped.code === errorTable.rate_limited.trpc) await holdRefusal(signal)
    throw mapped
  }
}

function mappedError(thrown: unknown): TRPCError {
  const error = toAppError(thrown)
  return new TRPCError({ code: errorTable[error.code].trpc, message: error.publicText, cause: error })
}

/** For the holder of a link's token: no organization is known, and no transaction is open. */
export const openProcedure = anyProcedure.use(({ ctx, meta, next, path }) => {
  requireWho(meta, 'anyone')
  return next({ ctx: { request: requestOf(ctx, path) } })
})

/** For a person, in any organization or in none. */
export const personProcedure = anyProcedure.use(async ({ ctx, meta, next, path }) => {
  requireWho(meta, 'person')
  const person = await ctx.findPerson()
  if (!person) throw new AppError('unauthenticated')
  requireWithinRate(ctx, person.userId)
  return next({ ctx: { person, request: requestOf(ctx, path) } })
})

/** For operators of the installation. They get no tenant's content. */
export const platformProcedure = anyProcedure.use(async ({ ctx, meta, next, path }) => {
  requireWho(meta, 'platform')
  const person = await ctx.findPerson()
  if (!person) throw new AppError('unauthenticated')
  if (!(await isPlatformOperator(ctx, person.userId))) throw new AppError('forbidden')
  return next({ ctx: { person, request: requestOf(ctx, path) } })
})

function requireWho(meta: ProcedurePolicy | undefined, who: OutsidePolicy['who']): void {
  if (!meta || isMemberPolicy(meta) || meta.who !== who)
    throw new AppError('forbidden', { internal: `a procedure without a policy for ${who}` })
}

function requestOf({ address, requestId }: TrpcContext, action: string): RequestFacts {
  return { action, address, id: requestId, place: organizationPlace, recordedCount: 0 }
}

/** Input that zod refused, an unknown procedure: tRPC's own errors, which carry no secret. */
function isCallersFault(error: TRPCError): boolean {
  return error.code !== 'INTERNAL_SERVER_ERROR' && !(error.cause instanceof AppError)
}

/** A caller's mistake is no failure of ours. */
function isOurFault(outcome: string): boolean {
  return outcome in errorTable && errorTable[outcome as keyof typeof errorTable].status >= 500
}

function codeOf(error: TRPCError): string {
  return isCallersFault(error) ? publicError(error).code : toAppError(error.cause ?? error).code
}

function publicError(error: TRPCError): { code: string; message: string; revision?: unknown } {
  if (error.cause instanceof AppError)
    return { code: error.cause.code, message: error.cause.publicText, revision: error.cause.extra.revision }
  if (error.cause instanceof ZodError) return { code: 'invalid', message: zodMessage(error.cause) }
  if (error.code === 'INTERNAL_SERVER_ERROR') return { code: 'internal', message: errorTable.internal.title }
  if (error.code === 'NOT_FOUND') return { code: 'not_found', message: errorTable.not_found.title }
  return { code: 'invalid', message: errorTable.invalid.title }
}

function zodMessage(error: ZodError): string {
  const issue = error.issues[0]
  if (!issue) return errorTable.invalid.title
  return issue.path.length > 0 ? `${issue.path.join('.')}: ${issue.message}` : issue.message
}

interface Broken {
  path: string
  message: string
}

/**
 * PostgreSQL stores no zero byte and no half of a surrogate pair, in no column and in no JSON: input with one is
 * refused before it reaches a service, and so is one that lies deeper than any valid input. Throws `invalid`.
 */
function requireWholeTexts(input: unknown): void {
  const broken = findBroken(input, '', 0)
  if (broken === null) return
  const { path, message } = broken
  throw new AppError('invalid', {
    public: path ? `${path}: ${message}.` : `The input ${message}.`,
    fields: [{ in: 'input', field: path, message }],
  })
}

/** Null: nothing is. */
function findBroken(value: unknown, path: string, depth: number): Broken | null {
  if (depth > inputDepthMax)
    return { path: path.split('.', 1)[0] ?? '', message: `must not be nested more than ${inputDepthMax} levels deep` }
  const unwhole = { path, message: 'must hold neither zero bytes nor halves of characters' }
  if (typeof value === 'string') return isWhole(value) ? null : unwhole
  if (typeof value !== 'object' || value === null) return null
  for (const [name, inner] of Object.entries(value)) {
    // A name that is broken itself is not repeated.
    const broken = isWhole(name) ? findBroken(inner, path ? `${path}.${name}` : name, depth + 1) : unwhole
    if (broken !== null) return broken
  }
  return null
}

function isWhole(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}
