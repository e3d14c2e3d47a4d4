import { errorCode, readableError } from '../lib/readable-error'
import { ErrorState } from './states'

interface QueryErrorProps {
  /** What the page shows, in the singular. */
  noun: string
  error: unknown
  onRetry: () => void
}

/** Instead of a page of one thing. What is not there is not asked for again. */
export function QueryError({ noun, error, onRetry }: QueryErrorProps) {
  const code = errorCode(error)
  // A malformed id is refused as bad input; for the viewer it is an address of nothing.
  if (code === 'NOT_FOUND' || code === 'BAD_REQUEST') {
    return (
      <ErrorState
        title={`There is no such ${noun}.`}
        text="The address may be mistyped, or it belongs to another organization."
      />
    )
  }
  return (
    <ErrorState title={`This ${noun} could not be loaded.`} text={readableError(error)} onRetry={onRetry} />
  )
}
