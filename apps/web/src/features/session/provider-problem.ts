/** By the codes that the sign-in service adds to the address. */
const sentences = new Map(
  Object.entries({
    not_invited: 'Your address has not been invited. Ask your organization for an invitation, then sign in again.',
    not_verified:
      'The provider has not verified your e-mail address. Ask its administrator to verify it, then sign in again.',
    account_not_linked:
      'An account with your address exists, but the provider has not verified the address. Sign in with your password.',
    email_not_found: 'The provider did not share your e-mail address. Ask its administrator to share it with Bootfarm.',
    provider_away: 'The provider does not respond. Try again in a minute, or sign in with your password.',
    access_denied: 'The provider denied access.',
    state_mismatch: 'Sign-in took too long or started in another browser. Sign in again.',
    please_restart_the_process: 'Sign-in took too long or started in another browser. Sign in again.',
  }),
)

/**
 * The message of the sign-in page for somebody who returns from the provider without being signed in. @param code of
 * its address
 */
export function providerProblem(code: string | undefined): string | null {
  if (!code) return null
  return sentences.get(code) ?? 'Could not sign in with the provider. Try again, or sign in with your password.'
}
