'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Page, PageHeader } from '../../components/page'
import { useToast } from '../../components/toast'
import { readableError, useTRPC } from '../../lib/trpc'
import { EditedNotice, ObjectQuery, PageName } from '../shell/object-page'
import { draftOf, tomorrow } from './schedule-draft'
import { ScheduleEditor } from './schedule-editor'
import type { ScheduleDetail } from './schedule-types'

export function EditSchedulePage({ scheduleId }: { scheduleId: string }) {
  const query = useQuery(useTRPC().schedule.get.queryOptions({ scheduleId }))
  return (
    <ObjectQuery noun="schedule" query={query}>
      {(schedule) => <EditSchedule schedule={schedule} />}
    </ObjectQuery>
  )
}

function EditSchedule({ schedule }: { schedule: ScheduleDetail }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const showToast = useToast()
  // The form's initial content. It stays while somebody types, even if newer content is loaded.
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
        <EditedNotice noun="schedule" onLoad={() => setEdited(schedule)} />
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
