'use client'

import { useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { FormDialog } from '../../components/dialog'
import { formProblem } from '../../lib/readable-error'
import { StaleChoice } from './stale'

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
  /** @param revision in place of the one that was seen: what others changed is overwritten */
  onSave: (revision?: number) => void
  onClose: () => void
  children: ReactNode
}

/** A form for one object. What somebody else changed meanwhile is loaded, or knowingly overwritten. */
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

/** For `onSuccess`: whatever the change touches is read anew, and the dialog closes. */
export function useSaved(onClose: () => void): () => void {
  const queryClient = useQueryClient()
  return () => {
    void queryClient.invalidateQueries()
    onClose()
  }
}
