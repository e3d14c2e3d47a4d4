'use client'

import { useState } from 'react'

/** One request of a dialog: whether it is under way, and the sentence that says why the last one did nothing. */
export function useAsked(request: () => Promise<string | null>) {
  const [failure, setFailure] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  async function ask() {
    setBusy(true)
    setFailure(await request())
    setBusy(false)
  }
  return { failure, isBusy, ask }
}
