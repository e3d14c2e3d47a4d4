'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { LinkButton } from '../../components/link-button'
import { useToast } from '../../components/toast'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import type { ScheduleDetail } from './schedule-types'

/** Run now, switch off and on, change, remove. */
export function ScheduleActions({ schedule }: { schedule: ScheduleDetail }) {
  const { id: scheduleId, revision, enabled } = schedule
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const showToast = useToast()
  const onError = (error: unknown) => {
    void queryClient.invalidateQueries(trpc.schedule.pathFilter())
    showToast({ title: 'Could not update the schedule.', text: readableError(error), tone: 'failed' })
  }
  const toggle = useMutation(
    trpc.schedule.setEnabled.mutationOptions({
      onSuccess: (saved) => {
        queryClient.setQueryData(trpc.schedule.get.queryKey({ scheduleId }), saved)
        void queryClient.invalidateQueries(trpc.schedule.pathFilter())
        showToast({ title: `${saved.name} ${saved.enabled ? 'enabled' : 'disabled'}.` })
      },
      onError,
    }),
  )
  const run = useMutation(
    trpc.schedule.runNow.mutationOptions({
      onSuccess: ({ runId }) => {
        void queryClient.invalidateQueries(trpc.schedule.pathFilter())
        router.push(`/schedules/${scheduleId}/runs/${runId}`)
      },
      onError,
    }),
  )
  return (
    <div className="flex flex-wrap gap-2">
      <RunNow name={schedule.name} busy={run.isPending} onConfirm={() => run.mutate({ scheduleId })} />
      <Button busy={toggle.isPending} onClick={() => toggle.mutate({ scheduleId, revision, enabled: !enabled })}>
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <LinkButton href={`/schedules/${scheduleId}/edit`}>Edit</LinkButton>
      <Remove schedule={schedule} onError={onError} />
    </div>
  )
}

function RunNow({ name, busy, onConfirm }: { name: string; busy: boolean; onConfirm: () => void }) {
  const [asking, setAsking] = useState(false)
  return (
    <>
      <Button busy={busy} onClick={() => setAsking(true)}>
        Run now
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={`Run ${name} now?`}
        action="Start run"
        onConfirm={onConfirm}
      >
        <p>Powers on its devices at the start rate. Devices already booting are skipped.</p>
      </ConfirmDialog>
    </>
  )
}

function Remove({ schedule, onError }: { schedule: ScheduleDetail; onError: (error: unknown) => void }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const showToast = useToast()
  const [asking, setAsking] = useState(false)
  const remove = useMutation(
    trpc.schedule.remove.mutationOptions({
      onSuccess: () => {
        void queryClient.invalidateQueries(trpc.schedule.list.pathFilter())
        showToast({ title: `${schedule.name} deleted.` })
        router.push('/schedules')
      },
      onError,
    }),
  )
  return (
    <>
      <Button busy={remove.isPending} onClick={() => setAsking(true)}>
        Delete
      </Button>
      <ConfirmDialog
        open={asking}
        onOpenChange={setAsking}
        title={`Delete ${schedule.name}?`}
        action="Delete schedule"
        onConfirm={() => remove.mutate({ scheduleId: schedule.id, revision: schedule.revision })}
      >
        <p>This also deletes its run history and stops a run in progress. The boots remain.</p>
      </ConfirmDialog>
    </>
  )
}
