import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { TRPCError } from '@trpc/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ZodError } from 'zod'
import { AppError, type AppErrorCode, errorTable, type FieldProblem } from '../../errors/app-error.ts'
import { toAppError } from '../../errors/to-app-error.ts'

/** The page about a code. */
function problemType(code: AppErrorCode): string {
  return `/api/docs/problems#${code}`
}

/** RFC 9457. `code` is stable; the texts are for people and may change. */
interface Problem {
  type: string
  title: string
  status: number
  code: AppErrorCode
  detail: string
  /** Problems by field; only if there are any. */
  errors?: FieldProblem[]
  requestId: string
  [extra: string]: unknown
}

/** Answers with a problem document; of an unforeseen error nothing but that it happened. */
export function sendProblem(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = problemError(thrown)
  const { log, status } = errorTable[error.code]
  request.log[log]({ code: error.code, path: request.routeOptions.url, detail: error.message }, 'request refused')
  return reply
    .code(status)
    .header('x-request-id', request.id)
    .type('application/problem+json')
    .send(JSON.stringify(problemOf(error, request.id)))
}

/** Answers bytes that are no HTTP request, on a connection that has no request yet. */
export function refuseBytes(thrown: Error & { code?: string }, socket: Socket): void {
  const code = thrown.code === 'HPE_HEADER_OVERFLOW' ? 'headers_too_large' : 'invalid'
  const requestId = randomUUID()
  const problem = problemOf(new AppError(code), requestId)
  const body = JSON.stringify(problem)
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    'connection: close',
  ]
  if (socket.writable && thrown.code !== 'ECONNRESET') socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  else socket.destroy()
}

function problemOf(error: AppError, requestId: string): Problem {
  const { title, status } = errorTable[error.code]
  return {
    type: problemType(error.code),
    title,
    status,
    code: error.code,
    detail: error.publicText,
    ...(error.fields.length > 0 ? { errors: error.fields } : {}),
    requestId,
    ...error.extra,
  }
}

/** Returns any error of a request as a row of the table. */
export function problemError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown
  if (thrown instanceof TRPCError) {
    if (thrown.cause instanceof AppError) return thrown.cause
    if (thrown.cause instanceof ZodError && thrown.code === 'BAD_REQUEST') return refusedInput(thrown.cause)
    return toAppError(thrown.cause ?? thrown)
  }
  return fromFastify(thrown) ?? toAppError(thrown)
}

const fieldsMax = 20

function refusedInput(error: ZodError): AppError {
  const fields = error.issues.slice(0, fieldsMax).map(({ path, message }) => ({
    in: 'input' as const,
    field: path.map(String).join('.'),
    message,
  }))
  const [first] = fields
  const detail = first?.field ? `${first.field}: ${first.message}` : first?.message
  return new AppError('invalid', { fields, ...(detail ? { public: detail } : {}) })
}

/** Fastify's own refusals, by its status. */
const codesOfStatus: Record<number, AppErrorCode> = {
  400: 'invalid_body',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'too_large',
  414: 'uri_too_long',
  415: 'unsupported_media_type',
  431: 'headers_too_large',
}

/** Refusals that Fastify itself makes before an operation runs. */
function fromFastify(thrown: unknown): AppError | null {
  if (!(thrown instanceof Error) || !('statusCode' in thrown) || typeof thrown.statusCode !== 'number') return null
  if (thrown.statusCode < 400 || thrown.statusCode >= 500) return null
  const code = 'code' in thrown && thrown.code === 'FST_ERR_BAD_URL' ? 'invalid' : undefined
  return new AppError(code ?? codesOfStatus[thrown.statusCode] ?? 'invalid', { internal: thrown.message })
}
