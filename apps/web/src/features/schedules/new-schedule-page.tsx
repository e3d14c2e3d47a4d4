'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { ObjectPicker } from '../../components/object-picker'
import { EmptyState, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { readableError, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useMay } from '../session/use-may'
import { PageName, QueryError } from '../shell/object-page'
import { emptyDraft, tomorrow } from './schedule-draft'
import { ScheduleEditor } from './schedule-editor'

export function NewSchedulePage() {
  const farms = usePicker('farm', {})
  const [farmId, setFarmId] = useState('')
  const mayCreate = useMay('schedule.change')
  if (farms.error) return <QueryError noun="farms" error={farms.error} onRetry={farms.retry} />
  if (!farms.isLoaded) {
    return (
      <LoadingState label="Loading farms">
        <Skeleton className="h-80 w-full rounded-lg" />
      </LoadingState>
    )
  }
  const farm = farms.itemOf(farmId) ?? farms.items[0]
  return (
    <Page>
      <PageName name="New schedule" />
      <PageHeader title="New schedule" summary={farm && `Farm ${farm.name}`} />
      {farm && (farms.items.length > 1 || farms.search !== '') && (
        <Panel title="Farm">
          <ObjectPicker
            label="The schedule powers on devices of this farm"
            picker={farms}
            value={farm.id}
            labelOf={({ name }) => name}
            onChange={setFarmId}
          />
        </Panel>
      )}
      {farm && mayCreate ? (
        <NewScheduleOfFarm key={farm.id} farm={farm} />
      ) : (
        <EmptyState
          title="You cannot create a schedule here."
          text="Creating a schedule requires a farm and the operator role."
        />
      )}
    </Page>
  )
}

interface Farm {
  id: string
  name: string
}

/** Begins with the farm's first site. */
function NewScheduleOfFarm({ farm }: { farm: Farm }) {
  const sites = useQuery(useTRPC().site.list.queryOptions({ farmId: farm.id, limit: 1 }))
  if (!sites.data) return null
  return <NewSchedule farm={farm} first={sites.data.items[0] ?? null} />
}

function NewSchedule({ farm, first }: { farm: Farm; first: { id: string; name: string; timeZone: string } | null }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const [initial] = useState(() =>
    emptyDraft({ siteId: first?.id ?? null, timeZone: first?.timeZone ?? 'UTC' }, tomorrow(new Date())),
  )
  const create = useMutation(
    trpc.schedule.create.mutationOptions({
      onSuccess: (schedule) => {
        queryClient.setQueryData(trpc.schedule.get.queryKey({ scheduleId: schedule.id }), schedule)
        void queryClient.invalidateQueries(trpc.schedule.list.pathFilter())
        router.push(`/schedules/${schedule.id}`)
      },
    }),
  )
  return (
    <ScheduleEditor
      farm={farm}
      site={first}
      initial={initial}
      action="Create schedule"
      busy={create.isPending || create.isSuccess}
      failure={create.error && readableError(create.error)}
      onSave={(fields) => create.mutate({ farmId: farm.id, ...fields })}
    />
  )
}
