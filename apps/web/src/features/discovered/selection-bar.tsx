'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Button } from '../../components/button'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import type { Discovered } from './discovered-columns'

interface SelectionBarProps {
  shown: Discovered[]
  chosen: Discovered[]
  /** Whether the list shows those that are ignored. */
  ignored: boolean
  onChoose: (devices: Discovered[]) => void
  onAdopt: () => void
}

/** As many as the API takes at once. */
const atOnceMax = 100

/** Above the list: what can be done with the rows that are ticked. */
export function SelectionBar({ shown, chosen, ignored, onChoose, onAdopt }: SelectionBarProps) {
  const ignore = useIgnore()
  const sites = new Set(chosen.map(({ siteId }) => siteId))
  const isAll = chosen.length > 0 && chosen.length === Math.min(shown.length, atOnceMax)
  const problem =
    sites.size > 1
      ? 'Select machines of one site only.'
      : chosen.length > atOnceMax
        ? `Select at most ${atOnceMax} machines.`
        : null
  const nothing = chosen.length === 0 || problem !== null
  return (
    <div className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-2 border-line border-b px-4 py-1.5">
      <label className="flex items-center gap-3 text-ink-soft text-sm">
        <input
          type="checkbox"
          checked={isAll}
          onChange={() => onChoose(isAll ? [] : shown.slice(0, atOnceMax))}
          className="size-4 accent-(--ink)"
        />
        {chosen.length === 0 ? 'Select all shown' : `${countOf(chosen.length, 'machine')} selected`}
      </label>
      <Button className="h-7!" disabled={nothing} onClick={onAdopt}>
        Adopt selected
      </Button>
      <Button
        className="h-7!"
        disabled={nothing}
        busy={ignore.isPending}
        onClick={() =>
          ignore.mutate({
            siteId: chosen[0]?.siteId ?? '',
            discoveredIds: chosen.map(({ id }) => id),
            ignored: !ignored,
          })
        }
      >
        {ignored ? 'Stop ignoring' : 'Ignore'}
      </Button>
      {problem && <span className="text-silent text-xs">{problem}</span>}
    </div>
  )
}

function useIgnore() {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  return useMutation(
    trpc.discovered.ignore.mutationOptions({
      onSuccess: ({ changedCount }, { ignored }) => {
        void queryClient.invalidateQueries(trpc.discovered.pathFilter())
        showToast({
          title: `${countOf(changedCount, 'machine')} ${ignored ? 'ignored' : 'waiting again'}.`,
          text: ignored
            ? 'Edges do not answer these machines and no longer report them. See them under Ignored.'
            : 'Edges report these machines at their next request.',
        })
      },
      onError: (error) =>
        showToast({ title: 'Could not update the machines.', text: readableError(error), tone: 'failed' }),
    }),
  )
}
