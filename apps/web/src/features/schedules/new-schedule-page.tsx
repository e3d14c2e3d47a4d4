'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { readableError, useTRPC } from '../../lib/trpc'
import { NewOfFarm } from '../farms/new-of-farm'
import { useMay } from '../session/use-may'
import { emptyDraft, tomorrow } from './schedule-draft'
import { ScheduleEditor } from './schedule-editor'

export function NewSchedulePage() {
  const mayCreate = useMay('schedule.change')
  return (
    <NewOfFarm
      noun="schedule"
      choice="The schedule powers on devices of this farm"
      mayCreate={mayCreate}
      allowedRole="operator"
    >
      {(farm) => <NewScheduleOfFarm key={farm.id} farm={farm} />}
    </NewOfFarm>
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
