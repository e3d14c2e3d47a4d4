'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Button, DownloadLink } from '../../components/button'
import { ConfirmButton } from '../../components/dialog'
import { useToast } from '../../components/toast'
import { countOf } from '../../lib/format-quantity'
import { readableError, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import type { ExperimentDetail } from './experiment-tags'

/** Pause or resume, stop, and the file of its boots. */
export function ExperimentActions({ experiment }: { experiment: ExperimentDetail }) {
  const { id: experimentId, revision, state, farmId, siteId } = experiment
  const mayChange = useMay('experiment.change', { farmId, siteId })
  const trpc = useTRPC()
  const options = useAfterChange(experimentId)
  const pause = useMutation(trpc.experiment.pause.mutationOptions(options))
  const resume = useMutation(trpc.experiment.resume.mutationOptions(options))
  const stop = useMutation(trpc.experiment.stop.mutationOptions(options))
  const isOver = state === 'done' || state === 'stopped'
  return (
    <>
      <DownloadLink href={`/api/v1/experiment-exports?experimentId=${experimentId}`}>CSV</DownloadLink>
      {mayChange && !isOver && (
        <>
          {state === 'running' ? (
            <Button busy={pause.isPending} onClick={() => pause.mutate({ experimentId, revision })}>
              Pause
            </Button>
          ) : (
            <Button look="primary" busy={resume.isPending} onClick={() => resume.mutate({ experimentId, revision })}>
              Resume
            </Button>
          )}
          <ConfirmButton
            label="Stop experiment"
            busy={stop.isPending}
            title={`Stop ${experiment.name}?`}
            action="Stop experiment"
            onConfirm={() => stop.mutate({ experimentId, revision })}
          >
            <p>Its boots so far are its result. Boots in progress do not count. You cannot resume it.</p>
          </ConfirmButton>
        </>
      )}
    </>
  )
}

/** Gives the settings of a cell to the collections of the devices. */
export function ApplyButton({ experiment, cell }: { experiment: ExperimentDetail; cell: number }) {
  const { id: experimentId, revision, devices, farmId, siteId } = experiment
  const mayApply = useMay('collection.change', { farmId, siteId })
  const trpc = useTRPC()
  const options = useAfterChange(experimentId)
  const apply = useMutation(trpc.experiment.applyCell.mutationOptions(options))
  const collections = [...new Map(devices.map((device) => [device.collectionId, device.collectionName])).values()]
  if (!mayApply) return null
  return (
    <ConfirmButton
      look="primary"
      label="Apply settings"
      busy={apply.isPending}
      title={`Apply “${experiment.cells[cell]?.title ?? ''}”?`}
      action="Apply settings"
      onConfirm={() => apply.mutate({ experimentId, revision, cell })}
    >
      <p className="wrap-anywhere">
        All devices of {countOf(collections.length, 'collection')} ({collections.join(', ')}) get these settings with
        their next boot.
      </p>
      <p>To undo this, remove the settings on the collection’s page.</p>
    </ConfirmButton>
  )
}

function useAfterChange(experimentId: string) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const showToast = useToast()
  return {
    onSuccess: (saved: ExperimentDetail) => {
      queryClient.setQueryData(trpc.experiment.get.queryKey({ experimentId }), saved)
      void queryClient.invalidateQueries(trpc.experiment.pathFilter())
      void queryClient.invalidateQueries(trpc.collection.pathFilter())
      void queryClient.invalidateQueries(trpc.audit.pathFilter())
    },
    onError: (error: unknown) => {
      void queryClient.invalidateQueries(trpc.experiment.pathFilter())
      showToast({ title: 'Could not update the experiment.', text: readableError(error), tone: 'failed' })
    },
  }
}
