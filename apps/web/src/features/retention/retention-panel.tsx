'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { SelectField, TextField } from '../../components/field'
import { LoadingState, Panel, Skeleton } from '../../components/page'
import { readableError, useTRPC } from '../../lib/trpc'
import { ObjectDialog, SentenceList, useSaved } from '../objects/object-dialog'
import { useMay } from '../session/use-may'
import { formOf, previewSentences, type Retention, readForm, retentionSentence } from './retention-text'

interface RetentionPanelProps {
  vdisk: { id: string; name: string; farmId: string }
}

/** How many released versions stay, and who may change that. */
export function RetentionPanel({ vdisk }: RetentionPanelProps) {
  const trpc = useTRPC()
  const [open, setOpen] = useState(false)
  const { data: retention, error } = useQuery(trpc.retention.get.queryOptions({ vdiskId: vdisk.id }))
  const mayChange = useMay('vdisk.change', { farmId: vdisk.farmId })
  return (
    <Panel
      title="Retention"
      aside={
        mayChange &&
        retention && (
          <Button small aria-label="Edit retention" onClick={() => setOpen(true)}>
            Edit
          </Button>
        )
      }
    >
      {retention ? (
        <p className="break-words text-ink-soft text-sm">{retentionSentence(retention)}</p>
      ) : error ? (
        <p className="text-failed text-sm">{readableError(error)}</p>
      ) : (
        <LoadingState label="Loading retention">
          <Skeleton className="h-4 w-64" />
        </LoadingState>
      )}
      {open && retention && <RetentionDialog vdisk={vdisk} retention={retention} onClose={() => setOpen(false)} />}
    </Panel>
  )
}

const choices = [
  { value: 'all', label: 'All versions' },
  { value: 'last', label: 'The last released ones, and those in use' },
]

interface RetentionDialogProps extends RetentionPanelProps {
  retention: Retention
  onClose: () => void
}

function RetentionDialog({ vdisk, retention, onClose }: RetentionDialogProps) {
  const trpc = useTRPC()
  const [seen] = useState(retention)
  const [form, setForm] = useState(formOf(seen))
  const set = useMutation(trpc.retention.set.mutationOptions({ onSuccess: useSaved(onClose) }))
  const read = readForm(form)
  const change = (changed: Partial<typeof form>) => setForm(Object.assign({}, form, changed))
  return (
    <ObjectDialog
      title={`Retention of ${vdisk.name}`}
      action="Save"
      saving={set}
      disabled={'problem' in read}
      onSave={(revision = seen.revision) =>
        'trashDays' in read &&
        set.mutate({ vdiskId: vdisk.id, revision, keptReleases: read.keptReleases, trashDays: read.trashDays })
      }
      onClose={onClose}
    >
      <SelectField
        label="Versions that stay"
        value={form.choice}
        options={choices}
        onChange={(choice) => change({ choice })}
      />
      {form.choice === 'last' && (
        <div className="grid gap-3 sm:grid-cols-2">
          <TextField
            label="Number of released versions"
            value={form.keptReleases}
            maxLength={4}
            onChange={(keptReleases) => change({ keptReleases })}
            hint="Those released last."
          />
          <TextField
            label="Days in the trash"
            value={form.trashDays}
            maxLength={2}
            onChange={(trashDays) => change({ trashDays })}
            hint="Then edges delete them, and they cannot be restored."
          />
        </div>
      )}
      {'problem' in read ? (
        <p role="status" className="text-failed text-sm">
          {read.problem}
        </p>
      ) : (
        read.keptReleases !== null && <Preview vdiskId={vdisk.id} keptReleases={read.keptReleases} />
      )}
    </ObjectDialog>
  )
}

/** The dry run. */
function Preview({ vdiskId, keptReleases }: { vdiskId: string; keptReleases: number }) {
  const trpc = useTRPC()
  const { data, error } = useQuery(trpc.retention.preview.queryOptions({ vdiskId, keptReleases }))
  if (data) return <SentenceList sentences={previewSentences(data)} />
  if (error) return <p className="text-failed text-sm">{readableError(error)}</p>
  return (
    <LoadingState label="Loading preview">
      <Skeleton className="h-4 w-64" />
    </LoadingState>
  )
}
