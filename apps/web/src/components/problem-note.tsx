import type { ReactNode } from 'react'

/** Why something failed. */
export function ProblemNote({ children }: { children: ReactNode }) {
  return (
    <p role="alert" className="rounded-md bg-failed-soft px-3 py-2 text-failed text-sm">
      {children}
    </p>
  )
}
