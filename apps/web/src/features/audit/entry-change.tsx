import { type ChangedField, changedFields } from './audit-text'
import type { AuditEntry } from './audit-types'

/** How many fields changed; opened, each of them as it was and as it is. All of it is text, whoever wrote it. */
export function EntryChange({ entry }: { entry: AuditEntry }) {
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
