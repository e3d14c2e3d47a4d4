import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { PlatformContext } from '../../context/service-context.ts'
import { findSignedIn, type SignedIn } from '../../session/find-actor.ts'
import type { Auth } from './auth.ts'
import { headersOf } from './auth-routes.ts'
import { sessionTokenOf } from './session-cookie.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The cookies of a session that this request has extended; null for all others. */
    renewedCookies: string[] | null
  }
}

/** Sends the browser the cookie of a session that was extended: it would drop its own when that was to end at first. */
export function renewCookies(app: FastifyInstance): void {
  app.decorateRequest('renewedCookies', null)
  app.addHook('onSend', async ({ renewedCookies }, reply) => {
    if (renewedCookies && renewedCookies.length > 0 && !reply.hasHeader('set-cookie'))
      reply.header('set-cookie', renewedCookies)
  })
}

/**
 * Returns the person who is signed in by the request's cookie; null if nobody is. better-auth handles sessions that
 * have expired or must be extended; all others cost one statement.
 */
export async function readSession(
  request: FastifyRequest,
  { auth, ...context }: PlatformContext & { auth: Auth },
): Promise<SignedIn | null> {
  const { authCookies, secret, sessionConfig } = await auth.$context
  const token = sessionTokenOf(request.headers.cookie, { name: authCookies.sessionToken.name, secret })
  if (token === null) return null
  const dueBeforeSeconds = sessionConfig.expiresIn - sessionConfig.updateAge
  const found = await findSignedIn(context, { token, dueBeforeSeconds })
  if (!found?.isDue) return found
  const { headers, response } = await auth.api.getSession({ headers: headersOf(request), returnHeaders: true })
  request.renewedCookies = headers.getSetCookie()
  return response && found
}
