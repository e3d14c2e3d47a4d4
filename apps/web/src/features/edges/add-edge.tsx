'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { Notice } from '../../components/field'
import { ObjectPicker } from '../../components/object-picker'
import { formProblem } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { usePicker } from '../../lib/use-picker'
import { useMay } from '../session/use-may'
import { addressWarning } from './install-line'
import { JoinDialog } from './join-dialog'

interface Site {
  id: string
  name: string
}

interface AddEdgeProps {
  /** Absent where it is to be chosen. */
  site?: Site
  look?: 'primary' | 'quiet'
}

/** Opens the way from a server of a site to an edge that is online. */
export function AddEdge({ site, look = 'primary' }: AddEdgeProps) {
  const [open, setOpen] = useState(false)
  const may = useMay('edge.change', site && { siteId: site.id })
  if (!may) return null
  return (
    <>
      <Button look={look} onClick={() => setOpen(true)}>
        Add edge
      </Button>
      {open && <AddEdgeDialog {...(site ? { site } : {})} onClose={() => setOpen(false)} />}
    </>
  )
}

/** Asks for the site where it is not known, makes a token, and goes on to the line that uses it. */
function AddEdgeDialog({ site, onClose }: { site?: Site; onClose: () => void }) {
  const trpc = useTRPC()
  const sites = usePicker('site', {}, { enabled: site === undefined })
  const installation = useQuery(trpc.edge.installation.queryOptions())
  const [chosenId, setChosenId] = useState('')
  const make = useMutation(trpc.edge.createJoinToken.mutationOptions())
  const chosen = site ?? sites.itemOf(chosenId) ?? sites.items[0]
  if (make.data && chosen && installation.data)
    return <JoinDialog site={chosen} url={installation.data.url} token={make.data} onClose={onClose} />
  const missing = installation.data?.releases.filter(({ problem }) => problem !== null) ?? []
  const isNone = installation.data !== undefined && missing.length === installation.data.releases.length
  const warning = installation.data && addressWarning(installation.data.url)
  return (
    <FormDialog
      title={site ? `Add edge to ${site.name}` : 'Add edge'}
      action="Generate install command"
      busy={make.isPending}
      disabled={!chosen || !installation.data || isNone}
      failure={formProblem(make.error ?? installation.error ?? sites.error)}
      onClose={onClose}
      onSubmit={() => chosen && make.mutate({ siteId: chosen.id })}
    >
      <p className="text-ink-soft text-sm">
        An edge is a server at a site that serves booting devices. You run one command on it as root. The command
        contains a token for one edge of this site that is valid for one hour.
      </p>
      {!site && (
        <ObjectPicker
          label="Site"
          picker={sites}
          value={chosen?.id ?? ''}
          labelOf={({ name }) => name}
          onChange={setChosenId}
          disabled={!chosen}
        />
      )}
      {sites.isLoaded && !chosen && (
        <Notice tone="silent">There is no site yet. Create one first: an edge belongs to a site.</Notice>
      )}
      {warning && <Notice tone="silent">{warning}</Notice>}
      {missing.map(({ arch, problem }) => (
        <Notice key={arch} tone={isNone ? 'silent' : 'live'}>
          {arch}: {problem}
        </Notice>
      ))}
    </FormDialog>
  )
}
