import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../domain/caller.ts'
import { trustedRequestId } from '../domain/request-id.ts'
import type { AnsweredRequest } from '../domain/telemetry.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Known once somebody asked; null where nobody did, or nobody is signed in. */
    caller: Caller | null
  }
}

const callerLeft = 499
/** What supervisors and balancers ask every few seconds. */
const probes = new Set(['/healthz', '/readyz'])

export function makeRequestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  return trustedRequestId(headers['x-request-id']) ?? randomUUID()
}

/** One line in the log for each request; its id on every answer. Neither query, nor cookies, nor any other header is written. */
export function logRequests(app: FastifyInstance, onAnswered: (answered: AnsweredRequest) => void): void {
  app.decorateRequest('caller', null)
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    const begin = performance.now()
    // Fastify's own hook for the end is not called where the caller left.
    reply.raw.once('close', () => {
      const answered = answeredRequest(request, reply, performance.now() - begin)
      onAnswered(answered)
      const { kind = null, id = null, organizationId = null } = request.caller ?? {}
      const level = probes.has(answered.route) ? 'debug' : 'info'
      request.log[level]({ ...answered, actorKind: kind, actorId: id, organizationId }, 'request')
    })
  })
}

function answeredRequest(request: FastifyRequest, reply: FastifyReply, durationMs: number): AnsweredRequest {
  return {
    method: request.method,
    route: request.routeOptions.url ?? 'none',
    status: reply.raw.writableFinished ? reply.raw.statusCode : callerLeft,
    durationMs: Math.round(durationMs * 100) / 100,
  }
}
