'use client'

import { ErrorState } from '../../components/page'
import { Logo } from './logo'

/** Instead of any page: the dashboard is up, the API is not. */
export function ApiAway() {
  return (
    <main className="mx-auto flex min-h-dvh max-w-md flex-col items-center justify-center px-4">
      <title>Control plane offline · Bootfarm</title>
      <h1>
        <Logo />
      </h1>
      <ErrorState
        title="The control plane does not respond."
        text="Devices still boot: edges do not depend on it. They report what happened when it returns."
        onRetry={() => window.location.reload()}
      />
    </main>
  )
}
