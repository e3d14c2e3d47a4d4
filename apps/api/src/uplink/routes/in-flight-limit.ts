import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../../errors/app-error.ts'

const retryAfterSeconds = 2

/**
 * Limits concurrent requests in this process to `max`. The next one is answered 503 before its body is read, so that
 * the memory for bodies is bounded. Edges keep what they wanted to send and back off.
 * @returns a hook for `onRequest`
 */
export function inFlightLimit(max: number): (request: FastifyRequest, reply: FastifyReply) => Promise<void> {
  let inFlight = 0
  return async (_request, reply) => {
    if (inFlight >= max) {
      reply.header('retry-after', String(retryAfterSeconds))
      throw new AppError('unavailable', {
        internal: `more than ${max} at once`,
        public: `${max} requests of this kind are in progress. Send it again in ${retryAfterSeconds} s.`,
      })
    }
    inFlight += 1
    reply.raw.once('close', () => {
      inFlight -= 1
    })
  }
}
