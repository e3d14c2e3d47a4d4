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
import type { Webhook } from './webhook-words'

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
          Send a test message
        </Button>
      )}
      <Button
        busy={update.isPending}
        onClick={() => update.mutate({ webhookId, revision, name, url, events, enabled: !enabled })}
      >
        {enabled ? 'Switch off' : 'Switch on'}
      </Button>
      <Button onClick={() => setAsked('change')}>Change</Button>
      <Button onClick={() => setAsked('rotate')}>New secret</Button>
      <Button onClick={() => setAsked('remove')}>Remove</Button>
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
        title="Give it a new secret?"
        action="Make a new secret"
        onConfirm={() => rotate.mutate({ webhookId })}
      >
        <p>For a day messages are signed with both, so that the receiver can change over.</p>
      </ConfirmDialog>
      <ConfirmDialog
        open={asked === 'remove'}
        onOpenChange={(open) => !open && close()}
        title={`Remove ${name}?`}
        action="Remove the webhook"
        onConfirm={() => remove.mutate({ webhookId })}
      >
        <p>It hears of nothing any more, and the log of its deliveries is gone.</p>
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
    toast({ title: `${webhook.name} was not changed`, text: readableError(error), tone: 'failed' })
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
