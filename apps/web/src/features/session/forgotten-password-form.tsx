'use client'

import { askAuth, authProblem } from './ask-auth'
import { MailedLinkForm } from './mailed-link-form'

export function ForgottenPasswordForm() {
  async function ask(email: string) {
    const { error } = await askAuth('request-password-reset', { email })
    return authProblem(error, 'Enter a valid e-mail address.')
  }
  return (
    <MailedLinkForm
      ask={ask}
      asked="If an account with this address exists, we have sent it a link that is valid for one hour. Without a mail server, the link is in the API’s log."
      back="Back to sign-in"
    />
  )
}
