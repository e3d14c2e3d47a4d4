'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { LoadingState, Page, PageHeader, Skeleton } from '../../components/page'
import { useToast } from '../../components/toast'
import { readableError, useTRPC } from '../../lib/trpc'
import { PageName, QueryError } from '../shell/object-page'
import { draftOf, tomorrow } from './schedule-draft'
import { ScheduleEditor } from './schedule-editor'
import type { ScheduleDetail } from './schedule-types'

export function EditSchedulePage({ scheduleId }: { scheduleId: string }) {
  const query = useQuery(useTRPC().schedule.get.queryOptions({ scheduleId }))
  if (query.error) return <QueryError noun="schedule" error={query.error} onRetry={() => query.refetch()} />
  if (!query.data) {
    return (
      <LoadingState label="Loading schedule">
        <Skeleton className="h-80 w-full rounded-lg" />
      </LoadingState>
    )
  }
  return <EditSchedule schedule={query.data} />
}

function EditSchedule({ schedule }: { schedule: ScheduleDetail }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const showToast = useToast()
  // The form's initial content: it stays while somebody types, whatever is loaded meanwhile.
  const [edited, setEdited] = useState(schedule)
  const [today] = useState(() => tomorrow(new Date()))
  const save = useMutation(
    trpc.schedule.update.mutationOptions({
      onSuccess: (saved) => {
        queryClient.setQueryData(trpc.schedule.get.queryKey({ scheduleId: saved.id }), saved)
        void queryClient.invalidateQueries(trpc.schedule.list.pathFilter())
        showToast({
          title: `${saved.name} saved.`,
          text: 'Its edges receive the change within a second.',
          tone: 'ready',
        })
        router.push(`/schedules/${saved.id}`)
      },
      // If somebody else was first, the page reports it.
      onError: () => queryClient.invalidateQueries(trpc.schedule.get.queryFilter({ scheduleId: schedule.id })),
    }),
  )
  return (
    <Page>
      <PageName name={schedule.name} />
      <PageHeader title={`Edit ${schedule.name}`} summary={`Farm ${schedule.farmName}`} />
      {schedule.revision !== edited.revision && !save.isSuccess && (
        <div className="flex flex-wrap items-center justify-between gap-3 rounded-lg bg-silent-soft px-4 py-3 text-silent text-sm">
          <p>Someone else edited this schedule. Load the latest version before you save.</p>
          <Button onClick={() => setEdited(schedule)}>Load latest version</Button>
        </div>
      )}
      <ScheduleEditor
        key={edited.revision}
        farm={{ id: schedule.farmId, name: schedule.farmName }}
        site={schedule.siteId === null ? null : { id: schedule.siteId, name: schedule.siteName ?? '' }}
        initial={draftOf(edited, today)}
        action="Save"
        busy={save.isPending || save.isSuccess}
        failure={save.error && readableError(save.error)}
        onSave={(fields) => save.mutate({ scheduleId: schedule.id, revision: edited.revision, ...fields })}
      />
    </Page>
  )
}
