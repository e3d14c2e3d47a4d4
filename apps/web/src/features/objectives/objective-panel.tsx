'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button'
import { SelectField, TextField } from '../../components/field'
import { LoadingState, Panel, Skeleton } from '../../components/page'
import { readableError, useTRPC } from '../../lib/trpc'
import { alertRefreshMs } from '../alerts/alert-refresh'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import {
  attainmentSentence,
  type Objective,
  type ObjectiveView,
  objectiveFormOf,
  objectiveSentence,
  readObjectiveForm,
} from './objective-text'

/** How many boots of a site are to be ready in time, and how many are. */
export function SiteObjective({ site, mayChange }: { site: { id: string; name: string }; mayChange: boolean }) {
  const trpc = useTRPC()
  const siteId = site.id
  const query = useQuery(trpc.objective.ofSite.queryOptions({ siteId }, { refetchInterval: alertRefreshMs }))
  const dialog = useDialog()
  const set = useMutation(trpc.objective.setOfSite.mutationOptions({ onSuccess: useSaved(dialog.close) }))
  const onSave = (objective: Objective) => set.mutate({ siteId, objective })
  return (
    <ObjectivePanel name={site.name} query={query} mayChange={mayChange} dialog={dialog} saving={set} onSave={onSave} />
  )
}

interface CollectionProps {
  collection: { id: string; name: string }
  mayChange: boolean
}

/** The same of a collection. */
export function CollectionObjective({ collection, mayChange }: CollectionProps) {
  const trpc = useTRPC()
  const { id: collectionId, name } = collection
  const query = useQuery(
    trpc.objective.ofCollection.queryOptions({ collectionId }, { refetchInterval: alertRefreshMs }),
  )
  const dialog = useDialog()
  const set = useMutation(trpc.objective.setOfCollection.mutationOptions({ onSuccess: useSaved(dialog.close) }))
  const onSave = (objective: Objective) => set.mutate({ collectionId, objective })
  return <ObjectivePanel name={name} query={query} mayChange={mayChange} dialog={dialog} saving={set} onSave={onSave} />
}

function useDialog() {
  const [isOpen, setOpen] = useState(false)
  return { isOpen, open: () => setOpen(true), close: () => setOpen(false) }
}

interface PanelProps {
  name: string
  query: { data: ObjectiveView | undefined; error: unknown }
  mayChange: boolean
  dialog: ReturnType<typeof useDialog>
  saving: { isPending: boolean; error: unknown }
  onSave: (objective: Objective) => void
}

function ObjectivePanel({ name, query: { data: view, error }, mayChange, dialog, saving, onSave }: PanelProps) {
  return (
    <Panel
      title="Objective"
      aside={
        mayChange &&
        view && (
          <Button small aria-label="Edit objective" onClick={dialog.open}>
            Edit
          </Button>
        )
      }
    >
      {view ? (
        <div className="flex flex-col gap-1 text-ink-soft text-sm">
          <p>{objectiveSentence(view)}</p>
          {view.objective && <p>{attainmentSentence(view)}</p>}
        </div>
      ) : error ? (
        <p className="text-failed text-sm">{readableError(error)}</p>
      ) : (
        <LoadingState label="Loading objective">
          <Skeleton className="h-4 w-64" />
        </LoadingState>
      )}
      {dialog.isOpen && view && (
        <ObjectiveDialog name={name} view={view} saving={saving} onSave={onSave} onClose={dialog.close} />
      )}
    </Panel>
  )
}

const choices = [
  { value: 'off', label: 'No objective' },
  { value: 'on', label: 'A share of boots is to be ready in time' },
]

interface DialogProps extends Pick<PanelProps, 'name' | 'saving' | 'onSave'> {
  view: ObjectiveView
  onClose: () => void
}

function ObjectiveDialog({ name, view, saving, onSave, onClose }: DialogProps) {
  const [form, setForm] = useState(() => objectiveFormOf(view))
  const read = readObjectiveForm(form)
  const change = (changed: Partial<typeof form>) => setForm(Object.assign({}, form, changed))
  return (
    <ObjectDialog
      title={`Objective of ${name}`}
      action="Save"
      saving={saving}
      disabled={'problem' in read}
      onSave={() => 'objective' in read && onSave(read.objective)}
      onClose={onClose}
    >
      <SelectField label="Objective" value={form.choice} options={choices} onChange={(choice) => change({ choice })} />
      {form.choice === 'on' && (
        <div className="grid gap-3 sm:grid-cols-3">
          <TextField
            label="Share, in %"
            value={form.percent}
            maxLength={4}
            onChange={(percent) => change({ percent })}
            hint="50 to 99.9."
          />
          <TextField
            label="Ready within, in s"
            value={form.seconds}
            maxLength={4}
            onChange={(seconds) => change({ seconds })}
            hint="Another time starts a new count."
          />
          <TextField
            label="Over days"
            value={form.days}
            maxLength={2}
            onChange={(days) => change({ days })}
            hint="1 to 90."
          />
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
