'use client'

import { type ReactNode, useState } from 'react'
import { ObjectPicker } from '../../components/object-picker'
import { EmptyState, LoadingState, Page, PageHeader, Panel, Skeleton } from '../../components/page'
import { usePicker } from '../../lib/use-picker'
import { PageName, QueryError } from '../shell/object-page'

interface Farm {
  id: string
  name: string
}

interface NewOfFarmProps {
  noun: string
  choice: string
  mayCreate: boolean
  /** The role that may create it. */
  allowedRole: string
  children: (farm: Farm) => ReactNode
}

/** The page that creates an object of a farm. Where there are several farms, it offers them. */
export function NewOfFarm({ noun, choice, mayCreate, allowedRole, children }: NewOfFarmProps) {
  const farms = usePicker('farm', {})
  const [farmId, setFarmId] = useState('')
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
      <PageName name={`New ${noun}`} />
      <PageHeader title={`New ${noun}`} summary={farm && `Farm ${farm.name}`} />
      {farm && (farms.items.length > 1 || farms.search !== '') && (
        <Panel title="Farm">
          <ObjectPicker label={choice} picker={farms} value={farm.id} onChange={setFarmId} />
        </Panel>
      )}
      {farm && mayCreate ? (
        children(farm)
      ) : (
        <EmptyState
          title={`You cannot create a ${noun} here.`}
          text={`Creating a ${noun} requires a farm and the ${allowedRole} role.`}
        />
      )}
    </Page>
  )
}
