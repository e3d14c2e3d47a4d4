import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AnsweredRequest } from '../../rules/telemetry.ts'
import { type EndedSpan, type OpenSpan, parseTraceparent, type Tracer, within } from '../../rules/tracer.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Known once it was requested; null if it was not, or nobody is signed in. */
    caller: Caller | null
    /** Its span; null if no traces are collected. */
    span: OpenSpan | null
  }
}

const callerLeft = 499
/** The paths that supervisors and balancers request every few seconds. */
const probes = new Set(['/healthz', '/readyz'])

export function makeRequestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  return trustedRequestId(headers['x-request-id']) ?? randomUUID()
}

/**
 * Escapes what a terminal acts on and JSON does not escape: DEL, C1 controls and marks that turn text around. They are
 * in texts only, so the line stays the same JSON.
 */
export function escapeForTerminals(line: string): string {
  return line.replace(
    /[\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

interface RequestListeners {
  onAnswered: (answered: AnsweredRequest) => void
  /** Without it no traces are collected. */
  tracer: Tracer | undefined
}

/**
 * Writes one line to the log for each request; its id is in every answer. Query, cookies and other headers are not
 * logged.
 */
export function logRequests(app: FastifyInstance, { onAnswered, tracer }: RequestListeners): void {
  app.decorateRequest('caller', null)
  app.decorateRequest('span', null)
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    const begin = performance.now()
    const isProbe = probes.has(routeOf(request))
    if (!isProbe) request.span = tracer?.start('server', parseTraceparent(request.headers.traceparent)) ?? null
    // Fastify's own hook for the end is not called where the caller left.
    reply.raw.once('close', () => {
      const answered = answeredRequest(request, reply, performance.now() - begin)
      onAnswered(answered)
      request.span?.end(requestSpan(answered))
      const { kind = null, id = null, organizationId = null } = request.caller ?? {}
      const facts = { ...answered, actorKind: kind, actorId: id, organizationId }
      const trace = request.span ? { traceId: request.span.traceId } : {}
      request.log[isProbe ? 'debug' : 'info']({ ...facts, ...trace }, 'request')
    })
    within(request.span ?? undefined, done)
  })
  // After a body was read, the asynchronous context is the connection's.
  app.addHook('preValidation', (request, _reply, done) => within(request.span ?? undefined, done))
}

function requestSpan({ route, method, status }: AnsweredRequest): EndedSpan {
  return {
    name: `${method} ${route}`,
    attributes: { 'http.request.method': method, 'http.route': route, 'http.response.status_code': status },
    error: status >= 500 ? String(status) : null,
  }
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? 'none'
}

function answeredRequest(request: FastifyRequest, reply: FastifyReply, durationMs: number): AnsweredRequest {
  return {
    method: request.method,
    route: routeOf(request),
    status: reply.raw.writableFinished ? reply.raw.statusCode : callerLeft,
    durationMs: Math.round(durationMs * 100) / 100,
  }
}

/** The caller in logs and traces: by id, never by name or e-mail address. */
interface Caller {
  kind: 'person' | 'api_key' | 'service_account' | 'edge'
  id: string | null
  /** Null for a person outside of any organization. */
  organizationId: string | null
}

/** UUIDs, ULIDs, hexadecimal trace ids: what balancers make. Nothing that could end a line or begin a tag. */
const trustedFormat = /^[A-Za-z0-9][A-Za-z0-9._-]{7,63}$/

/** The request id that a balancer in front gave, where it looks like one; else null. */
function trustedRequestId(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && trustedFormat.test(header) ? header : null
}
