'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { LoadingState, Skeleton } from '../../components/page'
import { readableError, useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { useWait } from '../placement/use-wait'
import { StormPrediction } from '../prediction/storm-prediction'
import { previewSentences } from './preview-text'
import type { VdiskDetail, Version, VersionPreview } from './version-types'

export interface StepProps {
  vdisk: VdiskDetail
  version: Version
  onClose: () => void
}

interface PreviewedDialogProps {
  title: string
  action: string
  /** The subject of the preview. */
  step: VersionPreview['action']
  version: Version
  saving: { isPending: boolean; error: unknown }
  disabled?: boolean
  onSave: (revision?: number) => void
  onClose: () => void
  children?: ReactNode
}

/** The effects are shown above the button; the button waits until they are known. */
function PreviewedDialog({ step, version, disabled = false, children, ...dialog }: PreviewedDialogProps) {
  const preview = usePreview(version.id, step)
  const mayGoOn = preview.data !== undefined && preview.data.refusals.length === 0
  return (
    <ObjectDialog {...dialog} disabled={disabled || !mayGoOn}>
      {children}
      <PreviewList query={preview} />
    </ObjectDialog>
  )
}

export function PromoteDialog({ vdisk, version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(vdisk.revision)
  const [when, setWhen] = useState('now')
  const [date, setDate] = useState('')
  const [time, setTime] = useState('06:00')
  const promote = useMutation(trpc.version.promote.mutationOptions({ onSuccess: useSaved(onClose) }))
  const wait = useStepWait(version, 'promote')
  const at = new Date(`${date}T${time}`)
  const isAt = when === 'at'
  const isDate = !Number.isNaN(at.getTime())
  return (
    <PreviewedDialog
      title={`Promote version ${version.number}`}
      action={isAt ? 'Schedule release' : wait.isOn ? 'Promote when all edges hold it' : 'Promote now'}
      step="promote"
      version={version}
      saving={promote}
      disabled={isAt && !isDate}
      onSave={(vdiskRevision = seen) =>
        promote.mutate({
          versionId: version.id,
          vdiskRevision,
          ...(isAt ? { releaseAt: at.toISOString() } : wait.input()),
        })
      }
      onClose={onClose}
    >
      <SelectField
        label="When"
        value={when}
        options={[
          { value: 'now', label: 'now' },
          { value: 'at', label: 'at a date and time' },
        ]}
        onChange={setWhen}
      />
      {isAt && (
        <div className="grid grid-cols-2 gap-3">
          <TextField label="Date" type="date" value={date} onChange={setDate} />
          <TextField
            label="Time of day"
            type="time"
            value={time}
            onChange={setTime}
            hint={`${Intl.DateTimeFormat().resolvedOptions().timeZone.replaceAll('_', ' ')}, your time zone`}
          />
        </div>
      )}
      {!isAt && wait.fields}
      {isAt && (
        <p className="text-ink-soft text-sm">Each edge switches at that time by itself. Expected result, as of now:</p>
      )}
      <StormPrediction vdisk={vdisk} version={version} />
    </PreviewedDialog>
  )
}

export function RevertDialog({ vdisk, version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(vdisk.revision)
  const revert = useMutation(trpc.version.revert.mutationOptions({ onSuccess: useSaved(onClose) }))
  const wait = useStepWait(version, 'revert')
  return (
    <PreviewedDialog
      title={`Roll back to version ${version.number}`}
      action={wait.isOn ? 'Roll back when all edges hold it' : `Roll back to version ${version.number}`}
      step="revert"
      version={version}
      saving={revert}
      onSave={(vdiskRevision = seen) => revert.mutate({ versionId: version.id, vdiskRevision, ...wait.input() })}
      onClose={onClose}
    >
      {wait.fields}
    </PreviewedDialog>
  )
}

/** Who rolls back is in a hurry: it does not wait unless it is chosen. */
function useStepWait(version: Version, step: 'promote' | 'revert') {
  const preview = usePreview(version.id, step)
  return useWait({ lacks: (preview.data?.lacking.length ?? 0) > 0, waitsAtFirst: step === 'promote' })
}

export function OverrideDialog({ vdisk, version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(vdisk.revision)
  const override = useMutation(trpc.version.override.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <PreviewedDialog
      title={`Override with version ${version.number}`}
      action="Set override"
      step="override"
      version={version}
      saving={override}
      onSave={(vdiskRevision = seen) => override.mutate({ versionId: version.id, vdiskRevision })}
      onClose={onClose}
    >
      <p className="text-ink-soft text-sm">
        Production devices boot this version until you clear the override, even if another version is promoted.
      </p>
    </PreviewedDialog>
  )
}

export function MergeDialog({ vdisk, version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(vdisk.revision)
  const [into, setInto] = useState('base')
  const [note, setNote] = useState('')
  const merge = useMutation(trpc.version.merge.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <PreviewedDialog
      title={`Merge version ${version.number}`}
      action="Merge versions"
      step="merge"
      version={version}
      saving={merge}
      onSave={(vdiskRevision = seen) =>
        merge.mutate({
          versionId: version.id,
          vdiskRevision,
          note,
          into: into === 'update' ? 'update' : 'base',
        })
      }
      onClose={onClose}
    >
      <SelectField
        label="Merge into"
        value={into}
        options={[
          { value: 'base', label: 'A new independent base image' },
          { value: 'update', label: 'One update of its base image' },
        ]}
        onChange={setInto}
      />
      <TextField label="Note" value={note} onChange={setNote} maxLength={500} />
    </PreviewedDialog>
  )
}

export function DeleteVersionDialog({ version, onClose }: StepProps) {
  const trpc = useTRPC()
  const [seen] = useState(version.revision)
  const remove = useMutation(trpc.vdisk.removeVersion.mutationOptions({ onSuccess: useSaved(onClose) }))
  return (
    <PreviewedDialog
      title={`Delete version ${version.number}?`}
      action={`Delete version ${version.number}`}
      step="delete"
      version={version}
      saving={remove}
      onSave={(revision = seen) => remove.mutate({ versionId: version.id, revision })}
      onClose={onClose}
    >
      <p className="text-ink-soft text-sm">You can restore it from the trash for 30 days. Its number is not reused.</p>
    </PreviewedDialog>
  )
}

/** Requested whenever a dialog opens: an old preview may be wrong. */
function usePreview(versionId: string, action: VersionPreview['action']) {
  return useQuery(
    useTRPC().version.preview.queryOptions({ versionId, action }, { staleTime: 0, gcTime: 0, retry: false }),
  )
}

/** The effects, before the action; or why it would be refused. */
function PreviewList({ query }: { query: ReturnType<typeof usePreview> }) {
  const { data, error } = query
  if (data)
    return (
      <section aria-label="Preview" className="flex flex-col gap-3 text-sm">
        {data.refusals.length > 0 ? (
          <ul className="flex flex-col gap-1 rounded-md bg-failed-soft px-3 py-2 text-failed">
            {data.refusals.map((text) => (
              <li key={text} className="break-words">
                {text}
              </li>
            ))}
          </ul>
        ) : (
          <ul className="flex list-disc flex-col gap-1 pl-5 text-ink-soft">
            {previewSentences(data).map((text) => (
              <li key={text} className="break-words">
                {text}
              </li>
            ))}
          </ul>
        )}
      </section>
    )
  if (error)
    return (
      <p role="alert" className="text-failed text-sm">
        {readableError(error)}
      </p>
    )
  return (
    <LoadingState label="Loading preview">
      <Skeleton className="h-4 w-full" />
      <Skeleton className="mt-2 h-4 w-2/3" />
    </LoadingState>
  )
}
