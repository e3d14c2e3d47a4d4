'use client'

import { ErrorState } from '../../components/states'
import { Logo } from './logo'

/** Instead of any page: the dashboard is up, the API is not. */
export function ApiAway() {
  return (
    <main className="mx-auto flex min-h-dvh max-w-md flex-col items-center justify-center px-4">
      <title>API away · Bootfarm</title>
      <h1>
        <Logo />
      </h1>
      <ErrorState
        title="The API does not answer."
        text="Devices go on booting: edges do not need it, and report what happened once it is back."
        onRetry={() => window.location.reload()}
      />
    </main>
  )
}
