'use client'

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRouter } from 'next/navigation'
import { useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmDialog } from '../../components/confirm-dialog'
import { useToast } from '../../components/toast'
import { formProblem, readableError } from '../../lib/readable-error'
import { useTRPC } from '../../lib/trpc'
import { WebhookDialog } from './webhook-dialog'
import type { Webhook } from './webhook-text'

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
  const toast = useToast()
  const refresh = () => queries.invalidateQueries(trpc.webhook.pathFilter())
  const onError = (error: unknown) =>
    toast({ title: `Could not update ${webhook.name}`, text: readableError(error), tone: 'failed' })
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
