import type { FastifyInstance, FastifyRequest } from 'fastify'
import { addressHeader } from './address-header.ts'
import type { Auth } from './auth.ts'
import type { ProviderAuth } from './provider-auth.ts'

const bodySizeMax = 64 * 1024
/** Set here. */
const ownHeaders = new Set(['set-cookie', 'content-length'])
/** The paths in which the provider takes part, by prefix. */
const byProvider = ['/api/auth/sign-in/social', '/api/auth/callback/', '/api/auth/link-social']

interface AuthRoutesOptions {
  auth: Auth
  providerAuth: ProviderAuth | undefined
  webUrl: string
}

/** Passes /api/auth/* to better-auth, which needs the request's original bytes. */
export async function authRoutes(
  app: FastifyInstance,
  { auth, providerAuth, webUrl }: AuthRoutesOptions,
): Promise<void> {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.route({
    method: ['GET', 'POST'],
    url: '/api/auth/*',
    bodyLimit: bodySizeMax,
    async handler(request, reply) {
      const asked = new URL(request.raw.url ?? '/', webUrl)
      const isByProvider = byProvider.some((path) => asked.pathname.startsWith(path))
      const provided = isByProvider ? await providerAuth?.find() : null
      if (provided === null && isByProvider && request.method === 'GET')
        return reply.redirect(new URL('/sign-in?error=provider_away', webUrl).toString())
      const answer = await (provided ?? auth).handler(
        new Request(asked, {
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

/** The rate limit counts by it, and sessions show it. A caller's own claim is ignored. */
function withCallersAddress(request: FastifyRequest): Headers {
  const headers = headersOf(request)
  headers.set(addressHeader, request.ip)
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
