'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmButton, FormDialog } from '../../components/dialog'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { formProblem, readableError, useTRPC } from '../../lib/trpc'
import { type RolloutDetail, waveName } from './rollout-text'

/** Pause or resume, start the next wave, cancel. */
export function RolloutActions({ rollout }: { rollout: RolloutDetail }) {
  const { id: rolloutId, revision, state } = rollout
  const trpc = useTRPC()
  const options = useAfterChange(rolloutId)
  const pause = useMutation(trpc.rollout.pause.mutationOptions(options))
  const next = useMutation(trpc.rollout.startNextWave.mutationOptions(options))
  const cancel = useMutation(trpc.rollout.cancel.mutationOptions(options))
  if (state === 'done' || state === 'cancelled') return null
  return (
    <>
      {rollout.mayStartNext && (
        <ConfirmButton
          label="Start next wave"
          busy={next.isPending}
          title={`Start ${waveName(rollout.wave + 1)}?`}
          action="Start next wave"
          onConfirm={() => next.mutate({ rolloutId, revision })}
        >
          <p>
            The edges of its {countOf(rollout.waves[rollout.wave + 1]?.sites.length ?? 0, 'site')} get the release, one
            edge of a site after the other. Devices keep running.
          </p>
        </ConfirmButton>
      )}
      {state === 'running' ? (
        <Button busy={pause.isPending} onClick={() => pause.mutate({ rolloutId, revision })}>
          Pause
        </Button>
      ) : (
        <Resume rollout={rollout} />
      )}
      <ConfirmButton
        look="bare"
        label="Cancel rollout"
        busy={cancel.isPending}
        title={`Cancel the rollout of ${rollout.version}?`}
        action="Cancel rollout"
        onConfirm={() => cancel.mutate({ rolloutId, revision })}
      >
        <p>{keptText(rollout)}</p>
        <p>
          Edges that do not run it yet keep their release. One that is just being updated may still run the new one.
        </p>
        <p>You cannot undo this. To go back to the former release, start a rollout of that one.</p>
      </ConfirmButton>
    </>
  )
}

function keptText({ counts, version }: RolloutDetail): string {
  const running = counts.running ?? 0
  return running === 0
    ? `No edge of this rollout runs ${version}.`
    : `${countOf(running, 'edge')} with ${version} ${running === 1 ? 'keeps' : 'keep'} it.`
}

/** Asks what becomes of edges in trouble, where there are any. */
function Resume({ rollout }: { rollout: RolloutDetail }) {
  const { id: rolloutId, revision, counts } = rollout
  const [asking, setAsking] = useState(false)
  const [troubled, setTroubled] = useState<'retry' | 'leave'>('retry')
  const trpc = useTRPC()
  const { onSuccess, onError } = useAfterChange(rolloutId)
  const troubles = (counts.failed ?? 0) + (counts.silent ?? 0) + (counts.late ?? 0)
  const resume = useMutation(
    trpc.rollout.resume.mutationOptions({
      onSuccess: (saved) => {
        setAsking(false)
        onSuccess(saved)
      },
      ...(troubles === 0 ? { onError } : {}),
    }),
  )
  const go = () => resume.mutate({ rolloutId, revision, troubled })
  return (
    <>
      <Button look="primary" busy={resume.isPending} onClick={troubles === 0 ? go : () => setAsking(true)}>
        Resume
      </Button>
      {asking && (
        <FormDialog
          title="Resume the rollout"
          action="Resume rollout"
          busy={resume.isPending}
          failure={formProblem(resume.error)}
          onClose={() => setAsking(false)}
          onSubmit={go}
        >
          <fieldset className="flex flex-col gap-2 text-sm">
            <legend className="mb-2 text-ink-soft">
              {countOf(troubles, 'edge')} {troubles === 1 ? 'does' : 'do'} not run the release.
            </legend>
            {choices.map(({ value, label }) => (
              <label key={value} className="flex items-baseline gap-2">
                <input type="radio" name="troubled" checked={troubled === value} onChange={() => setTroubled(value)} />
                {label}
              </label>
            ))}
          </fieldset>
        </FormDialog>
      )}
    </>
  )
}

const choices = [
  { value: 'retry', label: 'Order the release again for these edges' },
  { value: 'leave', label: 'Continue without them' },
] as const

function useAfterChange(rolloutId: string) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  return {
    onSuccess: (saved: RolloutDetail) => {
      queryClient.setQueryData(trpc.rollout.get.queryKey({ rolloutId }), saved)
      void queryClient.invalidateQueries(trpc.rollout.pathFilter())
      void queryClient.invalidateQueries(trpc.audit.pathFilter())
    },
    onError: (error: unknown) => {
      void queryClient.invalidateQueries(trpc.rollout.pathFilter())
      showToast({ title: 'Could not update the rollout.', text: readableError(error), tone: 'failed' })
    },
  }
}
