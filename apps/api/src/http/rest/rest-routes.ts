import { callTRPCProcedure } from '@trpc/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError, type FieldProblem } from '../../errors/app-error.ts'
import type { TrpcContext } from '../trpc/context.ts'
import { appRouter } from '../trpc/router.ts'
import { AnsweredBefore } from '../trpc/trpc.ts'
import { type JsonSchema, withoutNull } from './json-schema.ts'
import { type Operation, readOperations } from './operations.ts'
import { sendProblem } from './problem.ts'

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
  const byPath = Map.groupBy(readOperations().operations, ({ path }) => path)
  for (const [path, operations] of byPath) {
    const url = path.replaceAll(/\{(\w+)\}/g, ':$1')
    for (const operation of operations)
      app.route({
        method: operation.method,
        url,
        bodyLimit: operation.isLarge ? largeBodySizeMax : bodySizeMax,
        handler: (request, reply) => answer(operation, { ...options, request, reply }),
      })
    refuseOtherMethods(app, url, operations)
  }
}

const notFound = new AppError('not_found', { public: 'This address does not exist. See /api/docs.' })

/** An empty body is none, regardless of its type; JSON is the only accepted type. */
function takeJson(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined)
    else parseJson(request, body, done)
  })
}

function refuseOtherMethods(app: FastifyInstance, url: string, operations: Operation[]): void {
  const taken = new Set<string>(operations.map(({ method }) => method))
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

interface RequestParts {
  params: Record<string, string>
  query: Record<string, string | string[]>
  body: unknown
}

/**
 * The procedure's input out of a request's path, query and body; zod holds it against the schema afterwards.
 * Throws `invalid` for what the operation does not take, and for text that is no number or truth value where one
 * belongs.
 */
function inputOf(operation: Operation, { params, query, body }: RequestParts): unknown {
  const problems: FieldProblem[] = []
  const input: Record<string, unknown> = {}
  readBody(operation, body, { input, problems })
  for (const [name, value] of Object.entries(query)) {
    const schema = Object.hasOwn(operation.query, name) ? operation.query[name] : undefined
    if (schema) readValue({ in: 'query', name, value }, withoutNull(schema), { input, problems })
    else problems.push({ in: 'query', field: name, message: 'Unknown parameter.' })
  }
  for (const name of operation.pathNames) {
    const schema = operation.parameters[name] ?? {}
    readValue({ in: 'path', name, value: params[name] ?? '' }, schema, { input, problems })
  }
  if (hasNul(input)) problems.push({ in: 'body', field: '', message: 'Text cannot contain the character U+0000.' })
  if (problems.length > 0) throw invalid(problems)
  // A procedure without an input takes undefined, and one whose fields are all optional an empty object.
  return Object.keys(input).length === 0 && !operation.takesInput ? undefined : input
}

function invalid(problems: FieldProblem[]): AppError {
  const [first] = problems
  const place = first ? [first.in, first.field].filter(Boolean).join('.') : ''
  return new AppError('invalid', { public: `${place}: ${first?.message ?? ''}`, fields: problems })
}

interface Reading {
  input: Record<string, unknown>
  problems: FieldProblem[]
}

function readBody({ body: schema }: Operation, body: unknown, { input, problems }: Reading): void {
  if (body === undefined && !schema?.required) return
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    problems.push({ in: 'body', field: '', message: 'The body must be a JSON object.' })
    return
  }
  for (const [name, value] of Object.entries(body)) {
    if (schema?.properties && Object.hasOwn(schema.properties, name)) input[name] = value
    else problems.push({ in: 'body', field: name, message: 'Unknown field.' })
  }
}

interface TextValue {
  in: 'query' | 'path'
  name: string
  value: string | string[]
}

function readValue(text: TextValue, schema: JsonSchema, { input, problems }: Reading): void {
  const { name, value } = text
  const complain = (message: string) => problems.push({ in: text.in, field: name, message })
  if (schema.type === 'array') {
    input[name] = [value].flat().map((one) => scalarOf(one, schema.items ?? {}, complain))
    return
  }
  if (Array.isArray(value)) complain('Give this parameter only once.')
  else input[name] = scalarOf(value, schema, complain)
}

/** Strict: `1e3`, ` 1`, `yes` and the empty text are no values. */
function scalarOf(text: string, { type }: JsonSchema, complain: (message: string) => void): unknown {
  switch (type) {
    case 'integer':
      if (/^-?\d{1,15}$/.test(text)) return Number(text)
      complain('Enter a whole number.')
      return undefined
    case 'number':
      if (/^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text)
      complain('Enter a number.')
      return undefined
    case 'boolean':
      if (text === 'true' || text === 'false') return text === 'true'
      complain('Enter true or false.')
      return undefined
    default:
      return text
  }
}

/** PostgreSQL takes none in a text. */
function hasNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0')
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([name, item]) => name.includes('\0') || hasNul(item))
}
