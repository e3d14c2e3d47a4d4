'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { SelectField, TextField } from '../../components/field'
import { Instant } from '../../components/instant'
import { Facts, LoadingState, Panel, Skeleton } from '../../components/page'
import { readableError, useTRPC } from '../../lib/trpc'
import { heartbeatRefreshMs } from '../edges/heartbeat-refresh'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { type Cleaning, cleaningSentence, formOf, lastText, modes, readForm } from './cleaning-text'

interface CleaningPanelProps {
  edge: { id: string; name: string; siteId: string; revokedAt: string | null }
}

/** When the store of an edge frees unused space, and what the last time did. */
export function CleaningPanel({ edge }: CleaningPanelProps) {
  const trpc = useTRPC()
  const [open, setOpen] = useState(false)
  const { data: cleaning, error } = useQuery(
    trpc.cleaning.get.queryOptions({ edgeId: edge.id }, { refetchInterval: heartbeatRefreshMs }),
  )
  const mayChange = useMay('vdisk.change', { siteId: edge.siteId }) && edge.revokedAt === null
  return (
    <Panel
      title="Cleaning"
      aside={
        mayChange &&
        cleaning && (
          <Button small aria-label="Edit cleaning" onClick={() => setOpen(true)}>
            Edit
          </Button>
        )
      }
    >
      {cleaning ? (
        <CleaningFacts cleaning={cleaning} />
      ) : error ? (
        <p className="text-failed text-sm">{readableError(error)}</p>
      ) : (
        <LoadingState label="Loading cleaning">
          <Skeleton className="h-4 w-64" />
        </LoadingState>
      )}
      {open && cleaning && <CleaningDialog edge={edge} cleaning={cleaning} onClose={() => setOpen(false)} />}
    </Panel>
  )
}

function CleaningFacts({ cleaning }: { cleaning: Cleaning }) {
  const { last } = cleaning
  return (
    <Facts
      facts={[
        { label: 'Schedule', value: cleaningSentence(cleaning) },
        {
          label: 'Last time',
          value: last ? (
            <span className="break-words">
              {lastText(last)}
              {last.endedAt && (
                <>
                  , <Instant at={last.endedAt} />
                </>
              )}
            </span>
          ) : (
            'none in the last 30 days'
          ),
        },
      ]}
    />
  )
}

interface CleaningDialogProps extends CleaningPanelProps {
  cleaning: Cleaning
  onClose: () => void
}

function CleaningDialog({ edge, cleaning, onClose }: CleaningDialogProps) {
  const trpc = useTRPC()
  const [seen] = useState(cleaning)
  const [form, setForm] = useState(formOf(seen))
  const set = useMutation(trpc.cleaning.set.mutationOptions({ onSuccess: useSaved(onClose) }))
  const read = readForm(form)
  const change = (changed: Partial<typeof form>) => setForm(Object.assign({}, form, changed))
  return (
    <ObjectDialog
      title={`Cleaning of ${edge.name}`}
      action="Save"
      saving={set}
      disabled={'problem' in read}
      onSave={(revision = seen.revision) =>
        'mode' in read && set.mutate({ edgeId: edge.id, revision, mode: read.mode, window: read.window })
      }
      onClose={onClose}
    >
      <SelectField
        label="Free unused space"
        value={form.mode}
        options={modes}
        onChange={(value) => change({ mode: modes.find((one) => one.value === value)?.value ?? form.mode })}
      />
      {form.mode !== 'off' && (
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField
            label="Start from"
            type="time"
            value={form.from}
            onChange={(from) => change({ from })}
            hint="By the clocks of the site. Empty: at any time."
          />
          <TextField label="Start until" type="time" value={form.to} onChange={(to) => change({ to })} />
        </div>
      )}
      {'problem' in read && (
        <p role="status" className="text-failed text-sm">
          {read.problem}
        </p>
      )}
    </ObjectDialog>
  )
}
