'use client'

import { useState } from 'react'
import { Button } from '../../components/button'
import type { RouterOutputs } from '../../lib/trpc'
import { DeleteButton } from '../objects/delete-button'
import { useMay } from '../session/use-may'
import { MoveSiteDialog } from './move-site-dialog'
import { EditSiteDialog, NewSiteDialog } from './site-dialog'

export function NewSite() {
  const [open, setOpen] = useState(false)
  if (!useMay('site.change')) return null
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        New site
      </Button>
      {open && <NewSiteDialog onClose={() => setOpen(false)} />}
    </>
  )
}

export function SiteActions({ site }: { site: RouterOutputs['site']['get'] }) {
  const [open, setOpen] = useState<'edit' | 'move' | null>(null)
  if (!useMay('site.change', { farmId: site.farmId, siteId: site.id })) return null
  return (
    <>
      <Button onClick={() => setOpen('edit')}>Edit</Button>
      <Button onClick={() => setOpen('move')}>Move</Button>
      <DeleteButton target={{ kind: 'site', id: site.id }} name={site.name} leaveTo="/sites">
        <p>This also deletes its collections and devices. Revoke its edges first.</p>
      </DeleteButton>
      {open === 'edit' && <EditSiteDialog site={site} onClose={() => setOpen(null)} />}
      {open === 'move' && <MoveSiteDialog site={site} onClose={() => setOpen(null)} />}
    </>
  )
}
