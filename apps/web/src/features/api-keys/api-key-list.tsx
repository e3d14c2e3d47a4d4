'use client'

import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import Link from 'next/link'
import { type ReactNode, useState } from 'react'
import { Button } from '../../components/button'
import { ConfirmButton, ConfirmDialog, FormDialog } from '../../components/dialog'
import { SelectField } from '../../components/field'
import { Age, Instant } from '../../components/instant'
import { Unknown } from '../../components/page'
import { PagedList } from '../../components/paged-list'
import type { Column } from '../../components/table'
import { Tag, type Tone } from '../../components/tag'
import { useFailureToast } from '../../components/toast'
import { formProblem, type Listed, nextPage, useRefresh, useTRPC } from '../../lib/trpc'
import { useMay } from '../session/use-may'

type ApiKey = Listed<'apiKey'>

const states: Record<ApiKey['state'], { word: string; tone: Tone; title: string }> = {
  active: { word: 'Active', tone: 'ready', title: 'This key can be used.' },
  expired: { word: 'Expired', tone: 'silent', title: 'This key has expired.' },
  revoked: { word: 'Revoked', tone: 'plain', title: 'This key was revoked.' },
  disabled: { word: 'Disabled', tone: 'silent', title: 'The service account of this key is disabled.' },
  without_creator: {
    word: 'Inactive',
    tone: 'silent',
    title: 'The owner of this key has left, so the key no longer works.',
  },
}

/** The role's name for people. */
const roleText = (role: ApiKey['role']) => role.replace('_', ' ')

const apiKeyColumns: Column<ApiKey>[] = [
  {
    title: 'Name',
    cell: ({ name, prefix }) => (
      <span className="flex flex-col">
        <span className="font-medium text-ink">{name}</span>
        <span className="font-mono text-ink-faint text-xs">{prefix}…</span>
      </span>
    ),
  },
  {
    title: 'State',
    cell: ({ state }) => (
      <Tag tone={states[state].tone} title={states[state].title}>
        {states[state].word}
      </Tag>
    ),
  },
  {
    title: 'Access',
    from: 'sm',
    wide: true,
    cell: ({ role, placeName, permissions }) => (
      <span className="flex flex-col">
        <span>
          {roleText(role)}, {placeName ?? 'whole organization'}
        </span>
        {permissions && (
          <span className="truncate text-ink-faint text-xs" title={permissions.join(', ')}>
            only {permissions.join(', ')}
          </span>
        )}
      </span>
    ),
  },
  {
    title: 'Owner',
    meaning: 'The person or service account that the key belongs to, and ends with.',
    from: 'lg',
    cell: ({ createdBy, serviceAccountId }) => {
      if (!createdBy) return <Unknown label="former member" />
      if (!serviceAccountId) return createdBy
      return (
        <Link href={`/service-accounts/${serviceAccountId}`} className="hover:underline">
          {createdBy}
        </Link>
      )
    },
  },
  {
    title: 'Expires',
    from: 'md',
    cell: ({ expiresAt }) => (expiresAt ? <Instant at={expiresAt} /> : <span className="text-ink-faint">never</span>),
  },
  {
    title: 'Last used',
    from: 'sm',
    cell: ({ lastUsedAt }) => (lastUsedAt ? <Age at={lastUsedAt} /> : <span className="text-ink-faint">never</span>),
  },
]

interface ApiKeyListProps {
  label: string
  /** Only keys of this person or service account. */
  ownerId?: string
  empty: ReactNode
  /** The secret of a key that replaces one. */
  onSecret: (secret: string) => void
}

/** Keys, with what the viewer may do with each. */
export function ApiKeyList({ label, ownerId, empty, onSecret }: ApiKeyListProps) {
  const trpc = useTRPC()
  const mayChange = useMay('api_key.change', {})
  const [leaving, setLeaving] = useState<ApiKey | null>(null)
  const [rotating, setRotating] = useState<ApiKey | null>(null)
  const query = useInfiniteQuery(trpc.apiKey.list.infiniteQueryOptions(ownerId ? { ownerId } : {}, nextPage))
  const columns = mayChange
    ? [...apiKeyColumns, actionColumn({ onRevoke: setLeaving, onRotate: setRotating })]
    : apiKeyColumns
  return (
    <>
      <PagedList label={label} query={query} columns={columns} rowKey={({ id }) => id} empty={empty} />
      <RevokeDialog apiKey={leaving} onClose={() => setLeaving(null)} />
      {rotating && (
        <RotateDialog
          apiKey={rotating}
          onRotated={(secret) => {
            onSecret(secret)
            setRotating(null)
          }}
          onClose={() => setRotating(null)}
        />
      )}
    </>
  )
}

interface KeyActions {
  onRevoke: (key: ApiKey) => void
  onRotate: (key: ApiKey) => void
}

function actionColumn({ onRevoke, onRotate }: KeyActions): Column<ApiKey> {
  return {
    title: 'Actions',
    align: 'right',
    cell: (key: ApiKey) =>
      key.revokedAt === null && (
        <span className="inline-flex flex-wrap justify-end gap-1">
          {key.state !== 'expired' && <HolderActions apiKey={key} onRotate={onRotate} />}
          <Button look="bare" onClick={() => onRevoke(key)} aria-label={`Revoke ${key.name}`}>
            Revoke
          </Button>
        </span>
      ),
  }
}

/** One's own keys and those of service accounts are rotated; those of another person are taken over first. */
function HolderActions({ apiKey, onRotate }: { apiKey: ApiKey; onRotate: KeyActions['onRotate'] }) {
  const { data: me } = useQuery(useTRPC().session.me.queryOptions())
  if (!me) return null
  if (!apiKey.serviceAccountId && me.user.id !== apiKey.createdByUserId) return <TakeOverButton apiKey={apiKey} />
  return (
    <Button look="bare" onClick={() => onRotate(apiKey)} aria-label={`Rotate ${apiKey.name}`}>
      Rotate
    </Button>
  )
}

function TakeOverButton({ apiKey }: { apiKey: ApiKey }) {
  const trpc = useTRPC()
  const takeOver = useMutation(
    trpc.apiKey.takeOver.mutationOptions({
      onSuccess: useRefresh(trpc.apiKey.list.pathFilter()),
      onError: useFailureToast('Could not take over the API key'),
    }),
  )
  return (
    <ConfirmButton
      label="Take over"
      look="bare"
      busy={takeOver.isPending}
      aria-label={`Take over ${apiKey.name}`}
      title={`Take over ${apiKey.name}?`}
      action="Take over"
      onConfirm={() => takeOver.mutate({ apiKeyId: apiKey.id })}
    >
      <p>The key then has your permissions, up to its own, and works as long as you are a member.</p>
    </ConfirmButton>
  )
}

function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey | null; onClose: () => void }) {
  const trpc = useTRPC()
  const revoke = useMutation(
    trpc.apiKey.revoke.mutationOptions({
      onSuccess: useRefresh(trpc.apiKey.list.pathFilter()),
      onError: useFailureToast('Could not revoke the API key'),
    }),
  )
  return (
    <ConfirmDialog
      open={apiKey !== null}
      onOpenChange={(open) => !open && onClose()}
      title={`Revoke ${apiKey?.name ?? ''}?`}
      action="Revoke API key"
      onConfirm={() => apiKey && revoke.mutate({ apiKeyId: apiKey.id })}
    >
      <p>Scripts that use this key are refused from their next request. You cannot undo this.</p>
    </ConfirmDialog>
  )
}

const overlaps = [
  { value: '0', label: 'At once' },
  { value: '1', label: '1 hour' },
  { value: '24', label: '1 day' },
  { value: '168', label: '7 days' },
]

interface RotateDialogProps {
  apiKey: ApiKey
  onRotated: (secret: string) => void
  onClose: () => void
}

/** Makes a second key, so that a script changes over without a gap. */
function RotateDialog({ apiKey, onRotated, onClose }: RotateDialogProps) {
  const trpc = useTRPC()
  const refresh = useRefresh(trpc.apiKey.list.pathFilter())
  const [hours, setHours] = useState('24')
  const rotate = useMutation(
    trpc.apiKey.rotate.mutationOptions({
      onSuccess: async ({ secret }) => {
        onRotated(secret)
        await refresh()
      },
    }),
  )
  return (
    <FormDialog
      title={`Rotate ${apiKey.name}`}
      action="Rotate API key"
      busy={rotate.isPending}
      failure={formProblem(rotate.error)}
      onClose={onClose}
      onSubmit={() => rotate.mutate({ apiKeyId: apiKey.id, overlapHours: Number(hours) })}
    >
      <p className="text-ink-soft text-sm">
        A second key with the same permissions replaces this one. Both work until the old one ends.
      </p>
      <SelectField label="The old key ends after" value={hours} options={overlaps} onChange={setHours} />
    </FormDialog>
  )
}
