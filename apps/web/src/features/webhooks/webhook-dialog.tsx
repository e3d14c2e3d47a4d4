'use client'

import { useState } from 'react'
import { FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { events, eventText, type Webhook, type WebhookEvent } from './webhook-text'

export interface WebhookDraft {
  name: string
  url: string
  events: WebhookEvent[]
}

interface WebhookDialogProps {
  /** Null for a new one. */
  webhook: Webhook | null
  busy: boolean
  failure: string | null
  onSave: (draft: WebhookDraft) => void
  onClose: () => void
}

export function WebhookDialog({ webhook, busy, failure, onSave, onClose }: WebhookDialogProps) {
  const [name, setName] = useState(webhook?.name ?? '')
  const [url, setUrl] = useState(webhook?.url ?? 'https://')
  const [chosen, setChosen] = useState<WebhookEvent[]>(webhook?.events ?? ['boot.failed', 'edge.offline'])
  const toggle = (event: WebhookEvent) =>
    setChosen((now) => (now.includes(event) ? now.filter((one) => one !== event) : [...now, event]))
  return (
    <FormDialog
      title={webhook ? 'Edit webhook' : 'New webhook'}
      action={webhook ? 'Save' : 'Create webhook'}
      busy={busy}
      disabled={name.trim() === '' || chosen.length === 0}
      failure={failure}
      onClose={onClose}
      onSubmit={() => onSave({ name, url, events: chosen })}
    >
      <TextField label="Name" value={name} onChange={setName} />
      <TextField
        label="URL"
        value={url}
        onChange={setUrl}
        mono
        maxLength={2048}
        hint="A public HTTPS URL. Events are sent as JSON in POST requests."
      />
      <fieldset className="flex flex-col gap-1">
        <legend className="mb-1 font-medium text-ink-soft text-xs">Events</legend>
        {events.map((event) => (
          <label key={event} className="flex items-center gap-2 py-0.5 text-ink text-sm max-md:py-2">
            <input type="checkbox" checked={chosen.includes(event)} onChange={() => toggle(event)} />
            <span className="flex-1">{eventText[event]}</span>
            <code className="font-mono text-ink-faint text-xs">{event}</code>
          </label>
        ))}
      </fieldset>
    </FormDialog>
  )
}
