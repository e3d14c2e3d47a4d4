import Link from 'next/link'
import { Instant } from '../../components/instant'
import { Unknown } from '../../components/page'
import type { Column } from '../../components/table'
import { type AuditEntry, actionText, type ChangedField, changedFields, objectHref, objectText } from './audit-text'

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

/**
 * Shows the number of changed fields and, when opened, each before and after. All of it is plain text, regardless of
 * its author.
 */
function EntryChange({ entry }: { entry: AuditEntry }) {
  const fields = changedFields(entry)
  if (fields.length === 0) return <span className="text-ink-faint">no further details</span>
  return (
    <details className="min-w-48 whitespace-normal">
      <summary className="cursor-pointer select-none text-ink-soft hover:text-ink">
        {fields.map(({ name }) => name).join(', ')}
      </summary>
      <dl className="mt-2 mb-1 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 font-mono text-xs">
        {fields.map((field) => (
          <FieldChange key={field.name} field={field} />
        ))}
      </dl>
    </details>
  )
}

function FieldChange({ field: { name, before, after } }: { field: ChangedField }) {
  return (
    <>
      <dt className="text-ink-faint">{name}</dt>
      <dd className="min-w-0 max-w-xl break-all">
        {before !== null && <del className="text-ink-faint">{before}</del>}
        {before !== null && after !== null && <span aria-hidden="true"> → </span>}
        {after !== null && <ins className="text-ink no-underline">{after}</ins>}
      </dd>
    </>
  )
}
