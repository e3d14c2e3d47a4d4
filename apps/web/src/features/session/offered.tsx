import type { ReactNode } from 'react'
import { LoadingState, ProblemNote } from '../../components/page'
import { formProblem } from '../../lib/trpc'

interface OfferedProps<T> {
  offer: { data: T | undefined; error: unknown; isPending: boolean }
  /** While it is loading. */
  label: string
  children: (offered: T) => ReactNode
}

/** The API's facts about a link or this installation, once loaded. */
export function Offered<T>({ offer: { data, error }, label, children }: OfferedProps<T>) {
  if (error) return <ProblemNote>{formProblem(error)}</ProblemNote>
  if (data === undefined) return <LoadingState label={label}>{null}</LoadingState>
  return children(data)
}
