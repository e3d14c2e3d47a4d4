import type { ReactNode } from 'react'
import { ProblemNote } from '../../components/problem-note'
import { LoadingState } from '../../components/states'
import { formProblem } from '../../lib/readable-error'

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
