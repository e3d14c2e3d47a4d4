import { cookies } from 'next/headers'
import { z } from 'zod'
import { apiUrl } from '../../env'

/** The part of `session.me` that the frame of a page needs. */
export const sessionView = z.object({
  user: z.object({ name: z.string(), email: z.string() }),
  organization: z.object({ id: z.string(), name: z.string() }),
  grants: z.array(z.object({ role: z.string(), farmId: z.string().nullable() })),
})
export type SessionView = z.infer<typeof sessionView>
const sessionAnswer = z.object({ result: z.object({ data: sessionView }) })

/** For an API that answers, but slowly: then a page says that it is away. */
export const sessionLimitMs = 10_000

type SessionAnswer =
  | { kind: 'signed-in'; session: SessionView }
  /** A person without any membership. */
  | { kind: 'no-organization' }
  | { kind: 'signed-out' }
  | { kind: 'api-away' }

async function isSomebody(cookie: string): Promise<boolean> {
  const answer = await fetch(`${apiUrl()}/api/trpc/session.access`, {
    headers: { cookie },
    cache: 'no-store',
    signal: AbortSignal.timeout(sessionLimitMs),
  })
  return answer.ok
}

/**
 * Asks the API who is signed in, for pages outside of the dashboard, so that the first paint is already the right page.
 * It decides nothing: every answer
 * with data in it is authorised by the API.
 */
export async function readSession(): Promise<SessionAnswer> {
  const cookie = (await cookies()).toString()
  if (cookie === '') return { kind: 'signed-out' }
  try {
    const answer = await fetch(`${apiUrl()}/api/trpc/session.me`, {
      headers: { cookie },
      cache: 'no-store',
      signal: AbortSignal.timeout(sessionLimitMs),
    })
    if (answer.status === 401) return { kind: (await isSomebody(cookie)) ? 'no-organization' : 'signed-out' }
    if (!answer.ok) return { kind: 'api-away' }
    return { kind: 'signed-in', session: sessionAnswer.parse(await answer.json()).result.data }
  } catch (error) {
    console.error('session:', error instanceof Error ? (error.cause ?? error.message) : error)
    return { kind: 'api-away' }
  }
}

const signInAnswer = z.object({
  result: z.object({ data: z.object({ oidcName: z.string().nullable(), isSelfService: z.boolean() }) }),
})
export interface SignInOffer {
  /** The name of the OpenID Connect provider; null if there is none. */
  oidcName: string | null
  /** Whether people may sign up. */
  isSelfService: boolean
}

/** The options of the sign-in page beside a password; none while the API is away. */
export async function readSignInOffer(): Promise<SignInOffer> {
  try {
    const answer = await fetch(`${apiUrl()}/api/trpc/session.signIn`, {
      cache: 'no-store',
      signal: AbortSignal.timeout(sessionLimitMs),
    })
    return signInAnswer.parse(await answer.json()).result.data
  } catch (error) {
    console.error('sign-in:', error instanceof Error ? (error.cause ?? error.message) : error)
    return { oidcName: null, isSelfService: false }
  }
}
