import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { RateLimit } from '../../api-key/find-api-key-actor.ts'
import { apiKeyPrefix } from '../../api-key/schema.ts'
import { AppError } from '../../errors/app-error.ts'
import { pieceType } from '../../upload/schema.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The limit of the calling API key; null for people. */
    rateLimit: RateLimit | null
  }
}

/** Edges sign what they send, and have no cookies. */
const edgePrefix = '/edge/'
/** Answers to a person or a key; a document, such as that of the API, says otherwise itself. */
const apiPrefix = '/api/trpc/'
const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE'])
const yearSeconds = 31_536_000

/** Applies to every answer, and to every change except those of edges, on any route. */
export function protectWebSurface(app: FastifyInstance, webUrl: string): void {
  const origin = new URL(webUrl).origin
  app.decorateRequest('rateLimit', null)
  app.addHook('onRequest', async (request) => {
    // By the matched route, never by the address: `/%61pi/` leads to the same one.
    const { url: route = '' } = request.routeOptions
    if (safeMethods.has(request.method) || route.startsWith(edgePrefix)) return
    refuseForeignOrigin(request, origin)
    refuseForms(request)
  })
  app.addHook('onSend', async (request, reply) => {
    // Scripts read answers, nobody displays them: nothing in them may run, be framed, or be sniffed as another type.
    reply.header('x-content-type-options', 'nosniff')
    const { url: route = '' } = request.routeOptions
    if (route.startsWith(apiPrefix) && !reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
    reply.header('referrer-policy', 'no-referrer')
    reply.header('cross-origin-resource-policy', 'same-origin')
    reply.header('cross-origin-opener-policy', 'same-origin')
    reply.header('x-frame-options', 'DENY')
    if (!reply.hasHeader('content-security-policy'))
      reply.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
    if (origin.startsWith('https:')) reply.header('strict-transport-security', `max-age=${yearSeconds}`)
    if (request.rateLimit) setRateLimit(request.rateLimit, (name, value) => reply.header(name, value))
  })
}

/** The secret of the API key that a request brings; null where it brings none. */
export function apiKeyOf({ headers: { authorization } }: FastifyRequest): string | null {
  const [, secret] = /^Bearer +(\S+)$/i.exec(authorization ?? '') ?? []
  return secret?.startsWith(apiKeyPrefix) ? secret : null
}

/**
 * A browser sends its cookies with requests that other sites cause, and names their source: `Origin`, and
 * `Sec-Fetch-Site` in newer browsers. A caller that sends neither is no browser. An API key is never sent
 * automatically; beside a cookie it exempts from nothing, because some procedures depend on the signed-in person.
 */
function refuseForeignOrigin(request: FastifyRequest, own: string): void {
  if (apiKeyOf(request) && request.headers.cookie === undefined) return
  const { origin } = request.headers
  const site = request.headers['sec-fetch-site']
  const isForeignOrigin = origin !== undefined && origin !== own
  const isForeignSite = site !== undefined && site !== 'same-origin' && site !== 'none'
  if (isForeignOrigin || isForeignSite)
    throw new AppError('foreign_origin', {
      internal: `origin ${String(origin)}, site ${String(site)}`,
      public: `This request came from another site. Changes are accepted only from ${own} and with API keys.`,
    })
}

const scriptTypes = new Set(['application/json', pieceType])

/** Only a script can send JSON or pieces of uploads, and a script of another site needs a preflight: forms end here. */
function refuseForms({ headers }: FastifyRequest): void {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
  if (!hasBody) return
  const [type = ''] = (headers['content-type'] ?? '').split(';')
  if (!scriptTypes.has(type.trim().toLowerCase())) throw new AppError('unsupported_media_type')
}

/** As specified by draft-ietf-httpapi-ratelimit-headers-07. */
function setRateLimit(
  { perMinute, remaining, resetsInSeconds, isExceeded }: RateLimit,
  set: (name: string, value: string) => void,
): void {
  set('ratelimit-limit', String(perMinute))
  set('ratelimit-remaining', String(remaining))
  set('ratelimit-reset', String(resetsInSeconds))
  if (isExceeded) set('retry-after', String(resetsInSeconds))
}
