'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import { authClient, authProblem, unreachable } from './auth-client'
import { pathAfterSignIn } from './sign-in-path'

interface ProviderButtonProps {
  /** As the installation calls it. */
  name: string
  next: string | undefined
}

/** Signs in by the installation's OpenID Connect provider, and comes back here when that did not work. */
export function ProviderButton({ name, next }: ProviderButtonProps) {
  const [failure, setFailure] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  async function goThere() {
    setBusy(true)
    setFailure(null)
    const { data, error } = await authClient.signIn
      .social({ provider: 'oidc', callbackURL: pathAfterSignIn(next), errorCallbackURL: '/sign-in' })
      .catch(unreachable)
    const problem = authProblem(error, `${name} does not respond. Try again in a moment.`)
    if (problem) {
      setFailure(problem)
      setBusy(false)
    } else if (data && 'url' in data && data.url) window.location.assign(data.url)
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
