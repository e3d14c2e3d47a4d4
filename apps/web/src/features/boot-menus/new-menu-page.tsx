'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { ObjectPicker } from '../../components/object-picker'
import { EmptyState, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { readableError, useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useMay } from '../session/use-may'
import { PageName, QueryError } from '../shell/object-page'
import { emptyDraft } from './menu-draft'
import { MenuEditor } from './menu-editor'

const initial = emptyDraft()

export function NewMenuPage() {
  const farms = usePicker('farm', {})
  const [farmId, setFarmId] = useState('')
  const mayCreate = useMay('boot_menu.change')
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
      <PageName name="New boot menu" />
      <PageHeader title="New boot menu" summary={farm && `Farm ${farm.name}`} />
      {farm && (farms.items.length > 1 || farms.search !== '') && (
        <Panel title="Farm">
          <ObjectPicker
            label="The menu offers the vDisks of this farm."
            picker={farms}
            value={farm.id}
            labelOf={({ name }) => name}
            onChange={setFarmId}
          />
        </Panel>
      )}
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
