import { callTRPCProcedure } from '@trpc/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import type { TrpcContext } from '../trpc/context.ts'
import { appRouter } from '../trpc/router.ts'
import { AnsweredBefore } from '../trpc/trpc.ts'
import { type Operation, readOperations } from './operations.ts'
import { sendProblem } from './problem.ts'
import { inputOf, invalid } from './request-input.ts'

const bodySizeMax = 1024 * 1024
/** What clients send by mistake; every other path takes none of them either. */
const allMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY'] as const

export interface RestRoutesOptions {
  createContext: (request: FastifyRequest) => TrpcContext
  /** Of this API: answers that are kept for a repetition are sealed with it. */
  secret: string
}

/** /api/v1: each procedure of the router once more, as a REST operation. docs/reference/api.md says how it behaves. */
export async function restRoutes(app: FastifyInstance, options: RestRoutesOptions) {
  app.setErrorHandler(sendProblem)
  app.setNotFoundHandler((request, reply) => sendProblem(notFound, request, reply))
  takeJson(app)
  app.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  const byPath = Map.groupBy(readOperations().operations, ({ path }) => path)
  for (const [path, operations] of byPath) {
    const url = path.replaceAll(/\{(\w+)\}/g, ':$1')
    for (const operation of operations)
      app.route({
        method: operation.method,
        url,
        handler: (request, reply) => answer(operation, { ...options, request, reply }),
      })
    refuseOtherMethods(app, url, operations)
  }
}

const notFound = new AppError('not_found', { public: 'This address does not exist. See /api/docs.' })

/** An empty body is none, whatever its type says; JSON is the only type there is. */
function takeJson(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<string>(
    'application/json',
    { parseAs: 'string', bodyLimit: bodySizeMax },
    (request, body, done) => {
      if (body === '') done(null, undefined)
      else parseJson(request, body, done)
    },
  )
}

function refuseOtherMethods(app: FastifyInstance, url: string, operations: Operation[]): void {
  const taken = new Set<string>(operations.map(({ method }) => method))
  const allow = [...taken, ...(taken.has('GET') ? ['HEAD'] : [])].join(', ')
  app.route({
    method: allMethods.filter((method) => !taken.has(method)),
    url,
    // Whatever body it has: it is the method that is wrong.
    onRequest: async (_request, reply) => {
      reply.header('allow', allow)
      throw new AppError('method_not_allowed', { public: `This path supports ${allow}.` })
    },
    handler: async () => {},
  })
}

interface Exchange extends RestRoutesOptions {
  request: FastifyRequest
  reply: FastifyReply
}

async function answer(
  operation: Operation,
  { request, reply, createContext, secret }: Exchange,
): Promise<FastifyReply> {
  const gone = new AbortController()
  reply.raw.once('close', () => gone.abort())
  const context = createContext(request)
  // Before the input is looked at: who is nobody learns nothing of what an operation takes.
  if (!(await context.findActor())) throw new AppError('unauthenticated')
  const input = inputOf(operation, {
    params: request.params as Record<string, string>,
    query: request.query as Record<string, string | string[]>,
    body: request.body,
  })
  const key = operation.method === 'POST' ? idempotencyKeyOf(request) : null
  const output = await callTRPCProcedure({
    router: appRouter,
    path: operation.id,
    type: operation.type,
    ctx: { ...context, idempotency: key === null ? null : { key, secret } },
    getRawInput: async () => input,
    signal: gone.signal,
    batchIndex: 0,
  }).catch((error: unknown) => {
    const before = error instanceof Error ? error.cause : null
    if (!(before instanceof AnsweredBefore)) throw error
    reply.header('idempotency-replayed', 'true')
    return before.answer
  })
  return sendOutput(operation, reply, output)
}

const idempotencyKeyPattern = /^[\x21-\x7e]{1,255}$/

function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  const key = headers['idempotency-key']
  if (key === undefined) return null
  if (typeof key === 'string' && idempotencyKeyPattern.test(key)) return key
  throw invalid([{ in: 'header', field: 'idempotency-key', message: 'It must be 1 to 255 visible ASCII characters.' }])
}

function sendOutput({ status, creates }: Operation, reply: FastifyReply, output: unknown): FastifyReply {
  if (status === 204) return reply.code(204).send()
  if (creates) reply.header('location', `/api/v1${locationOf(creates, output)}`)
  return reply.code(status).type('application/json; charset=utf-8').send(JSON.stringify(output))
}

function locationOf(template: string, output: unknown): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = Reflect.get(Object(output), name)
    if (typeof value !== 'string') throw new AppError('internal', { internal: `the output has no text ${name}` })
    return encodeURIComponent(value)
  })
}
