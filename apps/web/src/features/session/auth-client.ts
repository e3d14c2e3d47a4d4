'use client'

import { createAuthClient } from 'better-auth/client'
import { twoFactorClient } from 'better-auth/client/plugins'

export const authClient = createAuthClient({ basePath: '/api/auth', plugins: [twoFactorClient()] })

interface AuthError {
  status: number
  message?: string | undefined
}

/** The error in an answer of the sign-in, as a sentence; null if there is none. */
export function authProblem(error: AuthError | null | undefined, refused: string): string | null {
  if (!error) return null
  if (error.status === 429) return 'Too many attempts. Wait a minute and try again.'
  if (error.status === 0 || error.status >= 500) return 'The control plane does not respond. Try again in a moment.'
  return refused
}

/** The network's own failure as an answer. */
export const unreachable = () => ({ data: null, error: { status: 0 } })
