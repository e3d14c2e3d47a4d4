'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import { ProblemNote } from '../../components/page'
import { PageLink } from '../../components/page-link'
import { askAuth, authProblem } from './ask-auth'
import { EntranceForm } from './entrance-form'
import { providerProblem } from './provider-problem'
import type { SignInOffer } from './read-session'
import { pathAfterSignIn } from './sign-in-path'

interface SignInFormProps {
  next: string | undefined
  offer: SignInOffer
  /** The result of returning from the provider. */
  providerError: string | undefined
}

/** E-mail and password; then a code, if the account requires one. Beside it the provider, if one is set. */
export function SignInForm({ next, offer: { oidcName, isSelfService }, providerError }: SignInFormProps) {
  const [wantsCode, setWantsCode] = useState(false)
  // A full load: the server renders the first page for the session that now exists.
  const goOn = () => window.location.assign(pathAfterSignIn(next))

  async function signIn({ email = '', password = '' }: Record<string, string>) {
    const { data, error } = await askAuth('sign-in/email', { email, password })
    const problem = authProblem(error, 'The e-mail address or password is incorrect.')
    if (problem) return problem
    if (data?.twoFactorRedirect) setWantsCode(true)
    else goOn()
    return null
  }

  if (wantsCode) return <CodeForm onDone={goOn} />
  return (
    <div className="flex flex-col gap-4">
      {providerError && <ProblemNote>{providerProblem(providerError)}</ProblemNote>}
      {oidcName && (
        <>
          <ProviderButton name={oidcName} next={next} />
          <p className="flex items-center gap-3 text-ink-faint text-xs before:h-px before:flex-1 before:bg-line after:h-px after:flex-1 after:bg-line">
            or
          </p>
        </>
      )}
      <EntranceForm
        key="password"
        fields={[
          { label: 'E-mail', name: 'email', type: 'email', autoComplete: 'username' },
          { label: 'Password', name: 'password', type: 'password', autoComplete: 'current-password' },
        ]}
        action="Sign in"
        working="Signing in"
        onSubmit={signIn}
      />
      <PageLink href="/forgotten-password" className="text-ink-soft text-sm underline underline-offset-4">
        Forgot password?
      </PageLink>
      {isSelfService && (
        <PageLink href="/sign-up" className="text-ink-soft text-sm underline underline-offset-4">
          No account yet?
        </PageLink>
      )}
    </div>
  )
}

interface ProviderButtonProps {
  name: string
  next: string | undefined
}

/** Signs in by the installation's OpenID Connect provider, and comes back here when that did not work. */
function ProviderButton({ name, next }: ProviderButtonProps) {
  const [failure, setFailure] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  async function goThere() {
    setBusy(true)
    setFailure(null)
    const { data, error } = await askAuth('sign-in/social', {
      provider: 'oidc',
      callbackURL: pathAfterSignIn(next),
      errorCallbackURL: '/sign-in',
    })
    const problem = authProblem(error, `${name} does not respond. Try again in a moment.`)
    if (problem) {
      setFailure(problem)
      setBusy(false)
    } else if (data?.url) window.location.assign(data.url)
  }
  return (
    <div className="flex flex-col gap-3">
      <p role="alert" className={failure ? 'rounded-md bg-failed-soft px-3 py-2 text-failed text-sm' : 'sr-only'}>
        {failure}
      </p>
      <Button onClick={goThere} busy={isBusy} className="h-9">
        {isBusy ? `Redirecting to ${name}` : `Continue with ${name}`}
      </Button>
    </div>
  )
}

function CodeForm({ onDone }: { onDone: () => void }) {
  async function giveCode({ code = '' }: Record<string, string>) {
    const text = code.replace(/\s/g, '')
    const isTotp = /^\d{6}$/.test(text)
    const { error } = await askAuth(isTotp ? 'two-factor/verify-totp' : 'two-factor/verify-backup-code', { code: text })
    const problem = authProblem(error, 'The code is incorrect or has expired.')
    if (!problem) onDone()
    return problem
  }

  return (
    <EntranceForm
      key="code"
      fields={[
        {
          label: 'Code',
          name: 'code',
          type: 'text',
          autoComplete: 'one-time-code',
          hint: 'Six digits from your authenticator, or a backup code.',
        },
      ]}
      action="Continue"
      working="Checking"
      onSubmit={giveCode}
    />
  )
}
