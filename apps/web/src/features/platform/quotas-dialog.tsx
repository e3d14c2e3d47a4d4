'use client'

import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { formatCount } from '../../lib/format-quantity'
import { formProblem } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { useSaved } from '../objects/object-dialog'
import { quotaTitles } from '../organization/organization-types'
import type { PlatformOrganization } from './organization-columns'

interface QuotasDialogProps {
  organization: PlatformOrganization
  onClose: () => void
}

/** An empty field is no limit. */
export function QuotasDialog({ organization, onClose }: QuotasDialogProps) {
  const { id: organizationId, name, quotas } = organization
  const [texts, setTexts] = useState(() =>
    Object.fromEntries(quotas.map((quota) => [quota.name, quota.allowed === null ? '' : String(quota.allowed)])),
  )
  const save = useMutation(useTRPC().platform.setQuotas.mutationOptions({ onSuccess: useSaved(onClose) }))
  const countOf = (text: string) => (text.trim() === '' ? null : Number(text))
  const isRight = Object.values(texts).every((text) => /^\s*\d{0,8}\s*$/.test(text))
  return (
    <FormDialog
      title={`Quotas of ${name}`}
      action="Save quotas"
      busy={save.isPending}
      disabled={!isRight}
      failure={formProblem(save.error)}
      onClose={onClose}
      onSubmit={() =>
        save.mutate({
          organizationId,
          quotas: Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, countOf(text)])),
        })
      }
    >
      <p className="text-ink-soft text-sm">
        Leave a field empty for no limit. A quota below the current usage removes nothing but blocks new objects.
      </p>
      <div className="grid grid-cols-2 gap-4">
        {quotas.map((quota) => (
          <TextField
            key={quota.name}
            label={quotaTitles[quota.name]}
            value={texts[quota.name] ?? ''}
            onChange={(text) => setTexts((now) => ({ ...now, [quota.name]: text }))}
            placeholder="unlimited"
            hint={`In use: ${formatCount(quota.used)}`}
            maxLength={8}
          />
        ))}
      </div>
    </FormDialog>
  )
}
