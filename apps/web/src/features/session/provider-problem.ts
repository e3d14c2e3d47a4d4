const sentences: Record<string, string> = {
  not_invited:
    'Nobody has invited your address. Ask somebody of your organization for an invitation, then sign in again.',
  account_not_linked:
    'An account with your address is here, but the provider has not verified the address. Sign in with your password.',
  email_not_found: 'The provider does not tell your e-mail address. Ask those who run it to share it with Bootfarm.',
  provider_away: 'The provider does not answer. Try again in a minute, or sign in with your password.',
  access_denied: 'The provider did not let you in.',
  state_mismatch: 'The way back took too long, or began in another browser. Sign in again.',
  please_restart_the_process: 'The way back took too long, or began in another browser. Sign in again.',
}

/** What the sign-in page says when somebody comes back from the provider without being signed in. @param code of its address */
export function providerProblem(code: string | undefined): string | null {
  if (!code) return null
  return sentences[code] ?? 'Signing in with the provider did not work. Try again, or sign in with your password.'
}
