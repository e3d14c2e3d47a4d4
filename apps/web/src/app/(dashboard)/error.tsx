'use client'

import { ErrorState } from '../../components/page'

/** Shows an error that a page threw while it was rendered: a fault of ours, not of the viewer. */
export default function PageError({ error, reset }: { error: Error & { digest?: string }; reset: () => void }) {
  return <ErrorState title="This page could not be displayed." text={error.message} onRetry={reset} />
}
