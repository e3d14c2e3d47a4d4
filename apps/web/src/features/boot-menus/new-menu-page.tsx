'use client'

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { SelectField } from '../../components/field'
import { Page, PageHeader } from '../../components/page-header'
import { Panel } from '../../components/panel'
import { EmptyState, LoadingState, Skeleton } from '../../components/states'
import { readableError } from '../../lib/readable-error'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { PageName } from '../shell/breadcrumbs'
import { QueryError } from '../shell/query-error'
import { emptyDraft } from './menu-draft'
import { MenuEditor } from './menu-editor'

type Farm = RouterOutputs['farm']['list']['items'][number]

const farmsMax = 100
const initial = emptyDraft()

export function NewMenuPage() {
  const query = useQuery(useTRPC().farm.list.queryOptions({ limit: farmsMax }))
  const [farmId, setFarmId] = useState<string>()
  const mayCreate = useMay('boot_menu.change')
  if (query.isPending) {
    return (
      <LoadingState label="Loading farms">
        <Skeleton className="h-80 w-full rounded-lg" />
      </LoadingState>
    )
  }
  if (!query.data) return <QueryError noun="farms" error={query.error} onRetry={() => query.refetch()} />
  const farms = query.data.items
  const farm = farms.find(({ id }) => id === farmId) ?? farms[0]
  return (
    <Page>
      <PageName name="New boot menu" />
      <PageHeader title="New boot menu" summary={farm && `Farm ${farm.name}`} />
      {farms.length > 1 && <FarmChoice farms={farms} value={farm?.id ?? ''} onChange={setFarmId} />}
      {farm && mayCreate ? (
        <NewMenu key={farm.id} farmId={farm.id} />
      ) : (
        <EmptyState
          title="You cannot create a boot menu here."
          text="Creating a boot menu requires a farm and the administrator role."
        />
      )}
    </Page>
  )
}

function FarmChoice(props: { farms: Farm[]; value: string; onChange: (farmId: string) => void }) {
  const options = props.farms.map(({ id, name }) => ({ value: id, label: name }))
  return (
    <Panel title="Farm">
      <SelectField label="The menu offers the vDisks of this farm." {...props} options={options} />
    </Panel>
  )
}

function NewMenu({ farmId }: { farmId: string }) {
  const trpc = useTRPC()
  const queryClient = useQueryClient()
  const router = useRouter()
  const create = useMutation(
    trpc.bootMenu.create.mutationOptions({
      onSuccess: (menu) => {
        queryClient.setQueryData(trpc.bootMenu.get.queryKey({ menuId: menu.id }), menu)
        void queryClient.invalidateQueries(trpc.bootMenu.list.pathFilter())
        router.push(`/boot-menus/${menu.id}`)
      },
    }),
  )
  return (
    <MenuEditor
      farmId={farmId}
      initial={initial}
      action="Create boot menu"
      busy={create.isPending || create.isSuccess}
      failure={create.error && readableError(create.error)}
      readOnly={false}
      onSave={(fields) => create.mutate({ farmId, ...fields })}
    />
  )
}
