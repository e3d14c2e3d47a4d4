'use client'

interface AuthError {
  /** 0: no answer came. */
  status: number
  /** better-auth's, such as INVALID_PASSWORD. */
  code?: string | undefined
}

/** The answers that pages read, by the path below /api/auth; docs of better-auth 1.7. */
interface Answers {
  'sign-in/email': { twoFactorRedirect?: boolean }
  'sign-in/social': { url?: string }
  'sign-out': unknown
  'request-password-reset': unknown
  'reset-password': unknown
  'change-password': unknown
  'update-user': unknown
  'two-factor/enable': { totpURI: string; backupCodes: string[] }
  'two-factor/disable': unknown
  'two-factor/generate-backup-codes': { backupCodes: string[] }
  'two-factor/verify-totp': unknown
  'two-factor/verify-backup-code': unknown
}

type Answer<Data> = { data: Data; error: null } | { data: null; error: AuthError }

/**
 * Asks the API's sign-in, and never throws. better-auth's own client would be 12 kB of scripts on the sign-in page.
 */
export async function askAuth<Path extends keyof Answers>(
  path: Path,
  input: Record<string, string> = {},
): Promise<Answer<Answers[Path]>> {
  try {
    const answer = await fetch(`/api/auth/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    })
    const body = await answer.json().catch(() => null)
    if (answer.ok) return { data: body, error: null }
    return { data: null, error: { status: answer.status, code: body?.code } }
  } catch {
    return { data: null, error: { status: 0 } }
  }
}

/** The error in an answer of the sign-in, as a sentence; null if there is none. */
export function authProblem(error: AuthError | null, refused: string): string | null {
  if (!error) return null
  if (error.status === 429) return 'Too many attempts. Wait a minute and try again.'
  if (error.status === 0 || error.status >= 500) return 'The control plane does not respond. Try again in a moment.'
  return refused
}
