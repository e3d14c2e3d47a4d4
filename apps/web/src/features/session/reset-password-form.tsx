'use client'

import { askAuth, authProblem } from './ask-auth'
import { EntranceForm, newPasswordField } from './entrance-form'

export function ResetPasswordForm({ token }: { token: string }) {
  async function reset({ password = '' }: Record<string, string>) {
    const { error } = await askAuth('reset-password', { newPassword: password, token })
    const refused =
      password.length < 12
        ? 'At least 12 characters.'
        : 'This link was already used or has expired. Request a new one on the sign-in page.'
    const problem = authProblem(error, refused)
    if (!problem) window.location.assign('/sign-in')
    return problem
  }
  return <EntranceForm fields={[newPasswordField]} action="Set password" working="Setting password" onSubmit={reset} />
}
