import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError, errorTable } from '../../errors/app-error.ts'
import { toAppError } from '../../errors/to-app-error.ts'

/** RFC 9457 problem document with the uplink's `code`; of an unforeseen error nothing but that it happened. */
export function problemHandler(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = fromFastify(thrown) ?? toAppError(thrown)
  const { status, title, log } = errorTable[error.code]
  request.log[log]({ code: error.code, detail: error.message }, 'uplink request refused')
  return reply
    .code(status)
    .type('application/problem+json')
    .send({ type: 'about:blank', title, status, code: error.code, detail: error.publicText, ...error.extra })
}

/** Refusals that Fastify itself makes before a route runs. */
function fromFastify(thrown: unknown): AppError | null {
  if (!(thrown instanceof Error) || !('statusCode' in thrown)) return null
  if (thrown.statusCode === 413) return new AppError('too_large')
  if (typeof thrown.statusCode === 'number' && thrown.statusCode < 500)
    return new AppError('invalid_body', { internal: thrown.message })
  return null
}
