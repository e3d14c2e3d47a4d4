'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog, FormDialog } from '../../components/dialog'
import { TextField } from '../../components/field'
import { Tag } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { formProblem, type RouterOutputs, useTRPC } from '../../lib/trpc'

interface WebhookActionsProps {
  webhook: Webhook
  onSecret: (secret: string) => void
}

export function WebhookActions({ webhook, onSecret }: WebhookActionsProps) {
  const [asked, setAsked] = useState<'change' | 'rotate' | 'remove' | null>(null)
  const { ping, update, rotate, remove } = useWebhookChanges(webhook, {
    onSecret,
    onChanged: () => setAsked(null),
  })
  const { id: webhookId, revision, name, url, events, enabled } = webhook
  const close = () => setAsked(null)
  return (
    <div className="flex flex-wrap gap-2">
      {enabled && (
        <Button busy={ping.isPending} onClick={() => ping.mutate({ webhookId })}>
          Send test message
        </Button>
      )}
      <Button
        busy={update.isPending}
        onClick={() => update.mutate({ webhookId, revision, name, url, events, enabled: !enabled })}
      >
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <Button onClick={() => setAsked('change')}>Edit</Button>
      <Button onClick={() => setAsked('rotate')}>Rotate secret</Button>
      <Button onClick={() => setAsked('remove')}>Delete</Button>
      {asked === 'change' && (
        <WebhookDialog
          webhook={webhook}
          busy={update.isPending}
          failure={formProblem(update.error)}
          onSave={(draft) => update.mutate({ ...draft, webhookId, revision, enabled })}
          onClose={close}
        />
      )}
      <ConfirmDialog
        open={asked === 'rotate'}
        onOpenChange={(open) => !open && close()}
        title="Rotate the secret?"
        action="Rotate secret"
        onConfirm={() => rotate.mutate({ webhookId })}
      >
        <p>For one day, messages are signed with both secrets so that you can update the receiver.</p>
      </ConfirmDialog>
      <ConfirmDialog
        open={asked === 'remove'}
        onOpenChange={(open) => !open && close()}
        title={`Delete ${name}?`}
        action="Delete webhook"
        onConfirm={() => remove.mutate({ webhookId })}
      >
        <p>This also deletes its delivery log.</p>
      </ConfirmDialog>
    </div>
  )
}

interface Told {
  onSecret: (secret: string) => void
  onChanged: () => void
}

function useWebhookChanges(webhook: Webhook, { onSecret, onChanged }: Told) {
  const trpc = useTRPC()
  const queries = useQueryClient()
  const router = useRouter()
  const refresh = () => queries.invalidateQueries(trpc.webhook.pathFilter())
  const onError = useFailureToast(`Could not update ${webhook.name}`)
  return {
    ping: useMutation(trpc.webhook.ping.mutationOptions({ onSuccess: refresh, onError })),
    update: useMutation(
      trpc.webhook.update.mutationOptions({
        onSuccess: () => {
          onChanged()
          return refresh()
        },
        onError,
      }),
    ),
    rotate: useMutation(
      trpc.webhook.rotateSecret.mutationOptions({
        onSuccess: ({ secret }) => {
          onSecret(secret)
          return refresh()
        },
        onError,
      }),
    ),
    remove: useMutation(
      trpc.webhook.remove.mutationOptions({
        onSuccess: async () => {
          router.push('/webhooks')
          await queries.invalidateQueries(trpc.webhook.list.pathFilter())
        },
        onError,
      }),
    ),
  }
}

interface WebhookDraft {
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

export function WebhookState({ webhook }: { webhook: Webhook }) {
  if (!webhook.enabled)
    return (
      <Tag
        tone={webhook.disabledReason ? 'failed' : 'plain'}
        title={webhook.disabledReason ?? 'A member disabled this webhook.'}
      >
        Disabled
      </Tag>
    )
  if (webhook.failingSince)
    return (
      <Tag tone="silent" title="The last message was not delivered.">
        Failing
      </Tag>
    )
  return <Tag tone="ready">Active</Tag>
}

export type Webhook = RouterOutputs['webhook']['get']
type WebhookEvent = Webhook['events'][number]
export type Delivery = RouterOutputs['webhook']['deliveries']['items'][number]

export const eventText: Record<WebhookEvent, string> = {
  'boot.failed': 'Boot failed',
  'edge.offline': 'Edge went offline',
  'wave.done': 'Boot wave finished',
  'version.promoted': 'Version promoted',
  'version.missing': 'Version lost by an edge',
  'write_cache.filling': 'Write cache nearly full',
  'device.key_alarm': 'Device did not prove its key',
  'rollout.paused': 'Rollout paused by itself',
  'store.filling': 'Store of an edge becomes full',
  'disk_capture.ended': 'Capture of a disk ended',
  'alert.opened': 'Alert opened',
  'alert.closed': 'Alert closed',
  'finding.opened': 'Boots became slower or fail more',
  'finding.closed': 'Boots are as before again',
}

const events = Object.keys(eventText) as WebhookEvent[]
