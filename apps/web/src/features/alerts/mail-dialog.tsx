'use client'

import { useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { SelectField, TextField } from '../../components/field'
import { browserTimeZone } from '../../lib/time-zone'
import { type RouterOutputs, useTRPC } from '../../lib/trpc'
import { ObjectDialog, useSaved } from '../objects/object-dialog'
import { mailFormOf, readMailForm } from './alert-text'

/** Whether the viewer gets alerts by mail, and when not. */
export function MailDialog({ onClose }: { onClose: () => void }) {
  const { data } = useQuery(useTRPC().alert.subscription.queryOptions())
  return data ? <Form seen={data} onClose={onClose} /> : null
}

const choices = [
  { value: 'off', label: 'No mails' },
  { value: 'on', label: 'A mail when alerts open or close' },
]

function Form({ seen, onClose }: { seen: RouterOutputs['alert']['subscription']; onClose: () => void }) {
  const trpc = useTRPC()
  const [form, setForm] = useState(() => mailFormOf(seen.subscription, browserTimeZone()))
  const subscribe = useMutation(trpc.alert.subscribe.mutationOptions({ onSuccess: useSaved(onClose) }))
  const read = readMailForm(form)
  const change = (changed: Partial<typeof form>) => setForm(Object.assign({}, form, changed))
  return (
    <ObjectDialog
      title="Alerts by mail"
      action="Save"
      saving={subscribe}
      disabled={'problem' in read}
      onSave={() => 'subscription' in read && subscribe.mutate(read)}
      onClose={onClose}
    >
      <SelectField
        label={`Mails to ${seen.email}`}
        value={form.mails}
        options={choices}
        onChange={(mails) => change({ mails })}
      />
      {form.mails === 'on' && (
        <>
          <div className="grid gap-3 sm:grid-cols-2">
            <TextField
              label="Quiet from"
              type="time"
              value={form.from}
              onChange={(from) => change({ from })}
              hint="What is held until the end is one mail then. Empty: mails at any time."
            />
            <TextField label="Quiet until" type="time" value={form.to} onChange={(to) => change({ to })} />
          </div>
          <TextField
            label="Time zone"
            value={form.timeZone}
            onChange={(timeZone) => change({ timeZone })}
            hint="For example Europe/Berlin."
          />
        </>
      )}
      {'problem' in read && (
        <p role="status" className="text-failed text-sm">
          {read.problem}
        </p>
      )}
    </ObjectDialog>
  )
}
