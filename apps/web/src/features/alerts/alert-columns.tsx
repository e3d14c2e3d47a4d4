'use client'

import { useMutation } from '@tanstack/react-query'
import { Button, TextLink } from '../../components/button'
import { Age, Instant } from '../../components/instant'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { formatCount } from '../../lib/format-quantity'
import { type Listed, useRefresh, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'
import { alertState, figuresText } from './alert-text'

export type Alert = Listed<'alert'>

export const alertColumns: Column<Alert>[] = [
  {
    title: 'Alert',
    wide: true,
    cell: (alert) => (
      <div className="min-w-48 whitespace-normal py-1.5">
        <TextLink href={alert.boots}>{alert.title}</TextLink>
        <p className="text-2xs text-ink-soft">{figuresText(alert)}</p>
      </div>
    ),
  },
  { title: 'State', from: 'sm', cell: (alert) => <AlertState alert={alert} /> },
  { title: 'Boots', align: 'right', from: 'sm', cell: ({ bootCount }) => formatCount(bootCount) },
  { title: 'Opened', from: 'sm', cell: ({ openedAt }) => <Instant at={openedAt} /> },
  { title: 'Last boot', from: 'lg', cell: ({ lastAt }) => <Age at={lastAt} /> },
  { title: 'Actions', align: 'right', cell: (alert) => <Acknowledge alert={alert} /> },
]

function AlertState({ alert }: { alert: Alert }) {
  const { tone, label, meaning } = alertState(alert)
  return (
    <Tag tone={tone} title={meaning}>
      {label}
    </Tag>
  )
}

function Acknowledge({ alert }: { alert: Alert }) {
  const trpc = useTRPC()
  const { farmId, siteId, collectionId } = alert
  const mayAcknowledge = useMay('alert.acknowledge', { farmId, siteId, collectionId })
  const acknowledge = useMutation(
    trpc.alert.acknowledge.mutationOptions({
      onSuccess: useRefresh(trpc.alert.pathFilter()),
      onError: useFailureToast('Could not acknowledge the alert.'),
    }),
  )
  if (!mayAcknowledge || alert.closedAt !== null) return null
  const isAcknowledged = alert.acknowledgedAt !== null
  return (
    <Button
      small
      busy={acknowledge.isPending}
      aria-label={`${isAcknowledged ? 'Take back acknowledgement' : 'Acknowledge'}: ${alert.title}`}
      onClick={() => acknowledge.mutate({ alertId: alert.id, acknowledged: !isAcknowledged })}
    >
      {isAcknowledged ? 'Take back' : 'Acknowledge'}
    </Button>
  )
}
