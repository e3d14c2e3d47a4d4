'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { SelectField } from '../../components/field'
import { Page, PageHeader } from '../../components/page-header'
import { Panel } from '../../components/panel'
import { EmptyState, LoadingState, Skeleton } from '../../components/states'
import { readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { PageName } from '../shell/breadcrumbs'
import { emptyDraft } from './schedule-draft'
import { ScheduleEditor, type ScopeChoice } from './schedule-editor'
import { tomorrow, useScopes } from './use-scopes'

export function NewSchedulePage() {
  const farms = useScopes()
  const [farmId, setFarmId] = useState<string>()
  const mayCreate = useMay('schedule.change')
  if (!farms) {
    return (
      <LoadingState label="Loading sites">
        <Skeleton className="h-80 w-full rounded-lg" />
      </LoadingState>
    )
  }
  const farm = farms.find((one) => one.farmId === farmId) ?? farms[0]
  return (
    <Page>
      <PageName name="New schedule" />
      <PageHeader title="New schedule" summary={farm && `Farm ${farm.farmName}`} />
      {farms.length > 1 && (
        <Panel title="Farm">
          <SelectField
            label="The schedule powers on devices of this farm"
            value={farm?.farmId ?? ''}
            options={farms.map((one) => ({ value: one.farmId, label: one.farmName }))}
            onChange={setFarmId}
          />
        </Panel>
      )}
      {farm && mayCreate ? (
        <NewSchedule key={farm.farmId} farmId={farm.farmId} scopes={farm.scopes} />
      ) : (
        <EmptyState
          title="You cannot create a schedule here."
          text="Creating a schedule requires a farm and the operator role."
        />
      )}
    </Page>
  )
}

function NewSchedule({ farmId, scopes }: { farmId: string; scopes: ScopeChoice[] }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const [first] = scopes
  const [initial] = useState(() =>
    emptyDraft({ siteId: first?.siteId ?? null, timeZone: first?.timeZone ?? 'UTC' }, tomorrow(new Date())),
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
      farmId={farmId}
      scopes={scopes}
      initial={initial}
      action="Create schedule"
      busy={create.isPending || create.isSuccess}
      failure={create.error && readableError(create.error)}
      onSave={(fields) => create.mutate({ farmId, ...fields })}
    />
  )
}
