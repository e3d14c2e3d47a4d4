import Link from 'next/link'
import { type ReactNode, useState } from 'react'
import { EntranceForm } from './entrance-form'

interface MailedLinkFormProps {
  /** @returns why it was refused; null if a mail was sent */
  ask: (email: string) => Promise<string | null>
  /** The message afterwards, the same whether the address has an account or not. */
  asked: ReactNode
  /** To the sign-in page. */
  back: string
}

export function MailedLinkForm({ ask, asked, back }: MailedLinkFormProps) {
  const [isAsked, setAsked] = useState(false)
  async function send({ email = '' }: Record<string, string>) {
    const problem = await ask(email)
    if (problem === null) setAsked(true)
    return problem
  }
  if (isAsked)
    return (
      <p role="status" className="text-ink">
        {asked}
      </p>
    )
  return (
    <div className="flex flex-col gap-4">
      <EntranceForm
        fields={[{ label: 'E-mail', name: 'email', type: 'email', autoComplete: 'username' }]}
        action="Send link"
        working="Sending"
        onSubmit={send}
      />
      <Link href="/sign-in" className="text-ink-soft text-sm underline underline-offset-4">
        {back}
      </Link>
    </div>
  )
}
