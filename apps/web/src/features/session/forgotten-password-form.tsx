'use client'

import { authClient, authProblem, unreachable } from './auth-client'
import { MailedLinkForm } from './mailed-link-form'

export function ForgottenPasswordForm() {
  async function ask(email: string) {
    const { error } = await authClient.requestPasswordReset({ email }).catch(unreachable)
    return authProblem(error, 'This is not an e-mail address.')
  }
  return (
    <MailedLinkForm
      ask={ask}
      asked="If the address has an account, a link is on its way there. It is valid for an hour. Where no mail server is set, the link stands in the API’s log."
      back="Back to sign-in"
    />
  )
}
