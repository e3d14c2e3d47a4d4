'use client'

import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from '../../components/button'
import { FormDialog } from '../../components/dialog'
import { formProblem } from '../../lib/readable-error'

interface Saving {
  isPending: boolean
  error: unknown
}

interface ObjectDialogProps {
  title: string
  action: string
  /** The mutation that saves it. */
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

/** The object's current revision, if the error says that somebody changed it meanwhile. */
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
