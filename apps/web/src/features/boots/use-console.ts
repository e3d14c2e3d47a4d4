'use client'

import { useEffect, useRef, useState } from 'react'
import { errorCode } from '../../lib/readable-error'
import type { RouterOutputs } from '../../lib/trpc'
import { useTRPCClient } from '../../lib/trpc'

type ConsoleLine = NonNullable<RouterOutputs['boot']['console']>['lines'][number]

export interface ConsoleState {
  lines: ConsoleLine[]
  /** There are more than are shown. */
  cut: boolean
}

const followIntervalMs = 1000
/** The last lines of a boot come with its end or a moment later. */
const readingsAfterEnd = 5
const linesMax = 2000
const readingsMax = 20_000

/** A boot's serial console, read on while the boot goes on; null where none is kept, or the viewer may not see it. */
export function useConsole(bootId: string, running: boolean): ConsoleState | null {
  const client = useTRPCClient()
  const [state, setState] = useState<ConsoleState | null>(null)
  /** Where the reading goes on, also when the boot has ended meanwhile. */
  const next = useRef<number | undefined>(undefined)

  useEffect(() => {
    const controller = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    let readingsLeft = running ? readingsMax : readingsAfterEnd
    async function read() {
      readingsLeft -= 1
      const part = await client.boot.console
        .query({ bootId, ...(next.current !== undefined && { after: next.current }) }, { signal: controller.signal })
        // A refusal stays one; only an API that is away is asked again.
        .catch((error: unknown) => (errorCode(error) === undefined ? undefined : null))
      if (controller.signal.aborted) return
      if (part) {
        next.current = part.next
        setState((known) => withLines(known, part.lines))
        if (part.more && part.lines.length > 0) return void read()
      }
      // No console is kept for this machine, or not for this viewer.
      if (part === null || (part === undefined && !running)) return
      if (readingsLeft > 0) timer = setTimeout(() => void read(), followIntervalMs)
    }
    void read()
    return () => {
      controller.abort()
      clearTimeout(timer)
    }
  }, [client, bootId, running])

  return state
}

function withLines(known: ConsoleState | null, lines: ConsoleLine[]): ConsoleState {
  if (known && (lines.length === 0 || known.cut)) return known
  const all = [...(known?.lines ?? []), ...lines]
  return { lines: all.slice(0, linesMax), cut: all.length > linesMax }
}
