import { callTRPCProcedure } from '@trpc/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import type { TrpcContext } from '../trpc/context.ts'
import { appRouter } from '../trpc/router.ts'
import { AnsweredBefore } from '../trpc/trpc.ts'
import { answerFile, fileOperations } from './files/file-routes.ts'
import { type Operation, readOperations } from './operations.ts'
import { etagOf, failedPrecondition, hasEtag, isNoneMatch, withIfMatch } from './preconditions.ts'
import { sendProblem } from './problem.ts'
import { inputOf, invalid } from './read-input.ts'
import { piecePath, pieceRoutes } from './upload-routes.ts'

const bodySizeMax = 1024 * 1024
const largeBodySizeMax = 6 * 1024 * 1024
/** Methods that clients send by mistake; every other path refuses them, too. */
const allMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'QUERY'] as const

interface RestRoutesOptions {
  createContext: (request: FastifyRequest) => TrpcContext
  /** The secret of this API: answers kept for a repetition are sealed with it. */
  secret: string
}

/** /api/v1: each procedure of the router as a REST operation. docs/reference/api.md describes its behaviour. */
export async function restRoutes(app: FastifyInstance, options: RestRoutesOptions) {
  app.setErrorHandler(sendProblem)
  app.setNotFoundHandler((request, reply) => sendProblem(notFound, request, reply))
  takeJson(app)
  app.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  for (const operation of fileOperations) {
    const url = urlOf(operation.path)
    app.get(url, (request, reply) => answerFile(operation, { request, reply, context: options.createContext(request) }))
    refuseOtherMethods(app, url, ['GET'])
  }
  await app.register(pieceRoutes, { createContext: options.createContext })
  refuseOtherMethods(app, piecePath, ['HEAD', 'PATCH'])
  const byPath = Map.groupBy(readOperations().operations, ({ path }) => path)
  for (const [path, operations] of byPath) {
    const url = urlOf(path)
    for (const operation of operations)
      app.route({
        method: operation.method,
        url,
        bodyLimit: operation.isLarge ? largeBodySizeMax : bodySizeMax,
        handler: (request, reply) => answer(operation, { ...options, request, reply }),
      })
    refuseOtherMethods(
      app,
      url,
      operations.map(({ method }) => method),
    )
  }
}

const notFound = new AppError('not_found', { public: 'This address does not exist. See /api/docs.' })

/**
 * An empty body is none, regardless of its type; JSON is the only accepted type. It is parsed when the request has its
 * turn (http/turns).
 */
function takeJson(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (_request, body, done) =>
    done(null, body === '' ? undefined : body),
  )
  app.addHook('preHandler', (request, _reply, done) => {
    if (typeof request.body !== 'string') return done()
    parseJson(request, request.body, (error, body) => {
      request.body = body
      done(error ?? undefined)
    })
  })
}

/** A path in Fastify's form. */
function urlOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

function refuseOtherMethods(app: FastifyInstance, url: string, methods: string[]): void {
  const taken = new Set(methods)
  const allow = [...taken, ...(taken.has('GET') ? ['HEAD'] : [])].join(', ')
  app.route({
    method: allMethods.filter((method) => !taken.has(method)),
    url,
    // Regardless of the body: the method is wrong.
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
  // Before the input is read: an anonymous caller learns nothing about an operation's input.
  if (!(await context.findActor())) throw new AppError('unauthenticated')
  const read = inputOf(operation, {
    params: request.params as Record<string, string>,
    query: request.query as Record<string, string | string[]>,
    body: request.body,
  })
  const input = operation.method === 'GET' ? read : withIfMatch(operation, request, read)
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
    if (!(before instanceof AnsweredBefore)) throw failedPrecondition(request, error)
    reply.header('idempotency-replayed', 'true')
    return before.answer
  })
  return sendOutput(operation, { request, reply }, output)
}

const idempotencyKeyPattern = /^[\x21-\x7e]{1,255}$/

function idempotencyKeyOf({ headers }: FastifyRequest): string | null {
  const key = headers['idempotency-key']
  if (key === undefined) return null
  if (typeof key === 'string' && idempotencyKeyPattern.test(key)) return key
  throw invalid([{ in: 'header', field: 'idempotency-key', message: 'It must be 1 to 255 visible ASCII characters.' }])
}

function sendOutput(
  operation: Operation,
  { request, reply }: Pick<Exchange, 'request' | 'reply'>,
  output: unknown,
): FastifyReply {
  const { status, creates } = operation
  if (status === 204) return reply.code(204).send()
  if (creates) reply.header('location', `/api/v1${locationOf(creates, output)}`)
  const text = JSON.stringify(output)
  if (hasEtag(operation)) {
    const etag = etagOf(output, text)
    reply.header('etag', etag)
    if (isNoneMatch(request, etag)) return reply.code(304).send()
  }
  return reply.code(status).type('application/json; charset=utf-8').send(text)
}

function locationOf(template: string, output: unknown): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = Reflect.get(Object(output), name)
    if (typeof value !== 'string') throw new AppError('internal', { internal: `the output has no text ${name}` })
    return encodeURIComponent(value)
  })
}
