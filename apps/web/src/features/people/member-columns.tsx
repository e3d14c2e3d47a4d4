import Link from 'next/link'
import { Age } from '../../components/instant'
import type { Column } from '../../components/table'
import { Tag } from '../../components/tag'
import type { RouterOutputs } from '../../lib/trpc'
import { roleText, scopeText } from './role-text'

export type Member = RouterOutputs['member']['get']

export const memberColumns: Column<Member>[] = [
  {
    title: 'Name',
    cell: ({ userId, name, email, isSelf }) => (
      <span className="flex max-w-64 flex-col max-sm:max-w-44">
        <span className="truncate">
          <Link href={`/members/${userId}`} className="font-medium text-ink hover:underline">
            {name}
          </Link>
          {isSelf && <span className="text-ink-faint"> · you</span>}
        </span>
        <span className="truncate text-ink-faint text-xs" title={email}>
          {email}
        </span>
      </span>
    ),
  },
  { title: 'Roles', wide: true, cell: ({ grants }) => <RoleList grants={grants} /> },
  {
    title: '2FA',
    meaning: 'Two-factor authentication',
    from: 'md',
    cell: (member) => <TotpTag {...member} />,
  },
  { title: 'Last sign-in', from: 'sm', cell: ({ lastSignInAt }) => <LastSignIn at={lastSignInAt} /> },
]

export function RoleList({ grants }: Pick<Member, 'grants'>) {
  return (
    <span className="flex flex-col whitespace-normal">
      {grants.map(({ id, role, scope }) => (
        <span key={id}>
          <span className="text-ink">{roleText(role)}</span>{' '}
          <span className="text-ink-soft">of {scopeText(scope)}</span>
        </span>
      ))}
    </span>
  )
}

export function TotpTag({ hasTotp }: Pick<Member, 'hasTotp'>) {
  return hasTotp ? (
    <Tag tone="ready" title="Signs in with a password and a second factor.">
      On
    </Tag>
  ) : (
    <Tag title="Signs in with a password only.">Off</Tag>
  )
}

export function LastSignIn({ at }: { at: string | null }) {
  return at ? <Age at={at} /> : <span className="text-ink-faint">never</span>
}
