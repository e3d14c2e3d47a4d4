'use client'

import { ErrorState } from '../../components/states'

/** What a page threw while it was drawn: a mistake of ours, not the viewer's. */
export default function PageError({ error, reset }: { error: Error & { digest?: string }; reset: () => void }) {
  return <ErrorState title="This page could not be displayed." text={error.message} onRetry={reset} />
}
