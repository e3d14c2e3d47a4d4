import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Auth } from './auth.ts'

const bodySizeMax = 64 * 1024
/** Set here. */
const ownHeaders = new Set(['set-cookie', 'content-length'])

/** Hands /api/auth/* to better-auth, which wants the request's bytes as they came. */
export async function authRoutes(app: FastifyInstance, { auth, webUrl }: { auth: Auth; webUrl: string }) {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: bodySizeMax }, (_request, body, done) =>
    done(null, body),
  )
  app.route({
    method: ['GET', 'POST'],
    url: '/api/auth/*',
    async handler(request, reply) {
      const answer = await auth.handler(
        new Request(new URL(request.raw.url ?? '/', webUrl), {
          method: request.method,
          headers: withCallersAddress(request),
          ...(Buffer.isBuffer(request.body) ? { body: new Uint8Array(request.body) } : {}),
        }),
      )
      reply.code(answer.status)
      for (const [name, value] of answer.headers) if (!ownHeaders.has(name)) reply.header(name, value)
      const cookies = answer.headers.getSetCookie()
      if (cookies.length > 0) reply.header('set-cookie', cookies)
      return reply.send(withoutTokens(answer.headers, Buffer.from(await answer.arrayBuffer())))
    },
  })
}

/** A session's token is in its cookie, where no script of a page reads it, and in no answer. */
function withoutTokens(headers: Headers, body: Buffer): Buffer | string {
  if (body.length === 0 || !headers.get('content-type')?.startsWith('application/json')) return body
  const answer: unknown = JSON.parse(body.toString('utf8'))
  return JSON.stringify(answer, (name, value: unknown) => (name === 'token' ? undefined : value))
}

/** The rate limit counts by this header; without a proxy in front it is the connection's own address. */
function withCallersAddress(request: FastifyRequest): Headers {
  const headers = headersOf(request)
  if (!headers.has('x-forwarded-for')) headers.set('x-forwarded-for', request.ip)
  return headers
}

export function headersOf(request: FastifyRequest): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === 'string') headers.set(name, value)
    else for (const item of value ?? []) headers.append(name, item)
  }
  return headers
}
