'use client'

import Link from 'next/link'
import { useState } from 'react'
import { authClient, authProblem, unreachable } from './auth-client'
import { EntranceForm } from './entrance-form'

/** Asks for a link by mail. What it says is the same whether the address has an account or not. */
export function ForgottenPasswordForm() {
  const [isAsked, setAsked] = useState(false)
  async function ask({ email = '' }: Record<string, string>) {
    const { error } = await authClient.requestPasswordReset({ email }).catch(unreachable)
    const problem = authProblem(error, 'This is not an e-mail address.')
    if (!problem) setAsked(true)
    return problem
  }
  if (isAsked)
    return (
      <p role="status" className="text-ink">
        If the address has an account, a link is on its way there. It is valid for an hour. Where no mail
        server is set, the link stands in the API’s log.
      </p>
    )
  return (
    <div className="flex flex-col gap-4">
      <EntranceForm
        fields={[{ label: 'E-mail', name: 'email', type: 'email', autoComplete: 'username' }]}
        action="Send a link"
        working="Sending"
        onSubmit={ask}
      />
      <Link href="/sign-in" className="text-ink-soft text-sm underline underline-offset-4">
        Back to sign-in
      </Link>
    </div>
  )
}
