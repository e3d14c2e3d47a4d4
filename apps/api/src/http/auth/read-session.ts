import type { FastifyRequest } from 'fastify'
import type { PlatformContext } from '../../context/service-context.ts'
import { findSignedIn, type SignedIn } from '../../session/find-actor.ts'
import type { Auth } from './auth.ts'
import { headersOf } from './auth-routes.ts'
import { sessionTokenOf } from './session-cookie.ts'

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
  return (await auth.api.getSession({ headers: headersOf(request) })) && found
}
