'use client'

import { useState } from 'react'
import { ObjectPicker } from '../../components/object-picker'
import { usePicker } from '../../lib/use-picker'

/** An edge of a site of the farm, and the fields that choose both. */
export function useEdgeChoice(farmId: string) {
  const sites = usePicker('site', { farmId })
  const [chosenSiteId, setChosenSiteId] = useState('')
  const siteId = chosenSiteId || sites.items[0]?.id
  const listed = usePicker('edge', siteId ? { siteId } : {}, { enabled: !!siteId })
  const edges = { ...listed, items: listed.items.filter(({ revokedAt }) => revokedAt === null) }
  const [chosenId, setChosenId] = useState('')
  const edge = edges.itemOf(chosenId) ?? edges.items[0]
  const isEmpty = sites.isLoaded && (siteId === undefined || (edges.isLoaded && !edge))
  const pickers = (
    <>
      <ObjectPicker
        label="Site"
        picker={sites}
        value={siteId ?? ''}
        onChange={(chosen) => {
          setChosenSiteId(chosen)
          setChosenId('')
        }}
      />
      <ObjectPicker
        label="Edge"
        picker={edges}
        value={edge?.id ?? ''}
        onChange={setChosenId}
        hint={isEmpty && 'This site has no edges yet.'}
      />
    </>
  )
  return { edge, pickers }
}
