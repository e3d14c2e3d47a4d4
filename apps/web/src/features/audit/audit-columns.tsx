import Link from 'next/link'
import { Instant } from '../../components/instant'
import { Unknown } from '../../components/panel'
import type { Column } from '../../components/table'
import { actionText, objectHref, objectText } from './audit-text'
import type { AuditEntry } from './audit-types'
import { EntryChange } from './entry-change'

export const auditColumns: Column<AuditEntry>[] = [
  {
    title: 'Time',
    cell: (entry) => (
      <>
        <span className="sm:hidden">
          <Instant at={entry.at} />
          <Actor entry={entry} />
        </span>
        <span className="max-sm:hidden">
          <Instant at={entry.at} full />
        </span>
      </>
    ),
  },
  { title: 'Actor', from: 'sm', cell: (entry) => <Actor entry={entry} /> },
  { title: 'Action', cell: ({ action }) => actionText(action) },
  { title: 'Target', cell: (entry) => <Changed entry={entry} /> },
  { title: 'Change', wide: true, cell: (entry) => <EntryChange entry={entry} /> },
  {
    title: 'IP',
    meaning: 'IP address of the request',
    from: 'xl',
    cell: ({ address }) => address ?? <Unknown />,
  },
]

/** The history of one object: what it is needs no column. */
export const historyColumns = auditColumns.filter(({ title }) => title !== 'Target' && title !== 'IP')

function Actor({ entry }: { entry: AuditEntry }) {
  return (
    <span className="block max-w-48 truncate max-sm:max-w-24" title={entry.actorName}>
      {entry.actorName}
      {entry.actorKind !== 'person' && <span className="text-ink-faint"> · {entry.actorKind.replace('_', ' ')}</span>}
    </span>
  )
}

function Changed({ entry }: { entry: AuditEntry }) {
  const href = objectHref(entry)
  const text = objectText(entry)
  return (
    <span className="block max-w-64 truncate max-sm:max-w-32" title={text}>
      {href ? (
        <Link href={href} className="underline decoration-line-strong underline-offset-2 hover:decoration-ink">
          {text}
        </Link>
      ) : (
        text
      )}
    </span>
  )
}
