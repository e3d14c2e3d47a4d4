'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import Link from 'next/link'
import { useRouter } from 'next/navigation'
import type { ReactNode } from 'react'
import { Button } from '../../components/button'
import { ConfirmButton, FormDialog } from '../../components/dialog'
import { TextAreaField } from '../../components/field'
import { useFailureToast, useToast } from '../../components/toast'
import { formProblem, useTRPCClient } from '../../lib/trpc'

interface Saving {
  isPending: boolean
  error: unknown
}

interface ObjectDialogProps {
  title: string
  action: string
  saving: Saving
  disabled?: boolean
  wide?: boolean
  /** @param revision instead of the one that was seen: other people's changes are overwritten */
  onSave: (revision?: number) => void
  onClose: () => void
  children: ReactNode
}

/** A form for one object. Another person's change is loaded, or knowingly overwritten. */
export function ObjectDialog(props: ObjectDialogProps) {
  const { title, action, saving, disabled = false, wide = false, onSave, onClose, children } = props
  const queryClient = useQueryClient()
  return (
    <FormDialog
      title={title}
      action={action}
      busy={saving.isPending}
      disabled={disabled}
      wide={wide}
      failure={formProblem(saving.error)}
      onClose={onClose}
      onSubmit={() => onSave()}
    >
      {children}
      <StaleChoice
        error={saving.error}
        onLoad={() => {
          void queryClient.invalidateQueries()
          onClose()
        }}
        onOverwrite={onSave}
      />
    </FormDialog>
  )
}

/** For `onSuccess`: everything that the change touches is read again, and the dialog closes. */
export function useSaved(onClose: () => void): () => void {
  const queryClient = useQueryClient()
  return () => {
    void queryClient.invalidateQueries()
    onClose()
  }
}

/** Returns the object's current revision if the error reports that somebody changed it in the meantime. */
export function staleRevision(error: unknown): number | null {
  const data = typeof error === 'object' && error !== null ? Reflect.get(error, 'data') : undefined
  const revision = typeof data === 'object' && data !== null ? Reflect.get(data, 'revision') : undefined
  return typeof revision === 'number' ? revision : null
}

interface StaleChoiceProps {
  error: unknown
  /** Replaces the typed content with the current one. */
  onLoad: () => void
  /** Saves what was typed over what the others changed. */
  onOverwrite: (revision: number) => void
}

/** Two ways out of a change that came too late. Nothing where the error is another one. */
function StaleChoice({ error, onLoad, onOverwrite }: StaleChoiceProps) {
  const revision = staleRevision(error)
  if (revision === null) return null
  return (
    <div className="flex flex-wrap gap-2">
      <Button onClick={onLoad}>Load latest version</Button>
      <Button onClick={() => onOverwrite(revision)}>Overwrite with my changes</Button>
    </div>
  )
}

/** The effects of a dialog's action, in sentences. */
export function SentenceList({ sentences }: { sentences: string[] }) {
  return (
    <section aria-label="Preview" className="text-sm">
      <ul className="flex list-disc flex-col gap-1 pl-5 text-ink-soft">
        {sentences.map((text) => (
          <li key={text} className="break-words">
            {text}
          </li>
        ))}
      </ul>
    </section>
  )
}

interface Target {
  kind: 'farm' | 'site' | 'collection' | 'device' | 'vdisk' | 'version' | 'store'
  id: string
}

interface DeleteButtonProps {
  target: Target
  name: string
  /** Names the objects that are deleted with it, and those that stay. */
  children: ReactNode
  /** Where to go afterwards, from the page of the deleted object. */
  leaveTo?: string
  label?: string
  compact?: boolean
}

/** Moves an object to the trash after confirmation, and explains how to restore it. */
export function DeleteButton({ target, name, children, leaveTo, label, compact }: DeleteButtonProps) {
  const queryClient = useQueryClient()
  const router = useRouter()
  const showToast = useToast()
  const remove = useMutation({
    mutationFn: useRemove(target),
    onSuccess: () => {
      if (leaveTo) router.push(leaveTo)
      void queryClient.invalidateQueries()
      showToast({
        title: `${name} moved to trash.`,
        text: (
          <Link href="/trash" className="underline underline-offset-4">
            Restore within 30 days
          </Link>
        ),
      })
    },
    onError: useFailureToast(`Could not delete ${name}.`),
  })
  return (
    <ConfirmButton
      label="Delete"
      busy={remove.isPending}
      className={compact ? 'h-7!' : ''}
      aria-label={label}
      title={`Delete ${name}?`}
      action={`Delete ${name}`}
      onConfirm={() => remove.mutate()}
    >
      {children}
      <p>You can restore it from the trash for 30 days.</p>
    </ConfirmButton>
  )
}

function useRemove({ kind, id }: Target): () => Promise<unknown> {
  const client = useTRPCClient()
  const remove: Record<Target['kind'], () => Promise<unknown>> = {
    farm: () => client.farm.remove.mutate({ farmId: id }),
    site: () => client.site.remove.mutate({ siteId: id }),
    collection: () => client.collection.remove.mutate({ collectionId: id }),
    device: () => client.device.remove.mutate({ deviceId: id }),
    vdisk: () => client.vdisk.remove.mutate({ vdiskId: id }),
    version: () => client.vdisk.removeVersion.mutate({ versionId: id }),
    store: () => client.store.remove.mutate({ storeId: id }),
  }
  return remove[kind]
}

interface PersonalityFieldProps {
  value: string
  onChange: (value: string) => void
}

export function PersonalityField({ value, onChange }: PersonalityFieldProps) {
  return (
    <TextAreaField
      label="Custom attributes"
      value={value}
      onChange={onChange}
      mono
      rows={5}
      hint="One NAME=value per line. Device overrides collection, collection overrides site. Available through the API; edges do not pass them to devices yet."
    />
  )
}
