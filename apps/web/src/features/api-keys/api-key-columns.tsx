import { Age, Instant } from '../../components/instant'
import { Unknown } from '../../components/panel'
import type { Column } from '../../components/table'
import { Tag, type Tone } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'

export type ApiKey = RouterOutputs['apiKey']['list']['items'][number]

const states: Record<ApiKey['state'], { word: string; tone: Tone; title: string }> = {
  active: { word: 'Active', tone: 'ready', title: 'This key can be used.' },
  expired: { word: 'Expired', tone: 'silent', title: 'This key has expired.' },
  revoked: { word: 'Revoked', tone: 'plain', title: 'This key was revoked.' },
  without_creator: {
    word: 'Inactive',
    tone: 'silent',
    title: 'The member who created this key has left, so the key no longer works.',
  },
}

/** As people read a role's name. */
export const roleText = (role: ApiKey['role']) => role.replace('_', ' ')

export const apiKeyColumns: Column<ApiKey>[] = [
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
    title: 'Created by',
    from: 'lg',
    cell: ({ createdBy }) => createdBy ?? <Unknown label="former member" />,
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
