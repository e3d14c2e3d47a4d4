import { listAudit } from '../../../audit/list-audit.ts'
import { type AuditEntryView, auditFilter } from '../../../audit/schema.ts'
import { fileOperation } from './file-operation.ts'
import { csvLines, jsonLines, pagesOf, rowsPerRead, tableFile, tableFormat, tableTypes } from './table-file.ts'

const columns = [
  'at',
  'actorKind',
  'actorName',
  'actorId',
  'action',
  'objectKind',
  'objectName',
  'objectId',
  'siteId',
  'before',
  'after',
  'address',
  'requestId',
] as const

export const auditExport = fileOperation({
  id: 'audit.export',
  path: '/audit-exports',
  summary: 'The audit log as a file',
  description: 'All entries that the filters of the list leave, in its order, without a limit.',
  policy: { permission: 'audit.read', place: 'visible' },
  input: auditFilter.extend(tableFormat),
  types: tableTypes,
  async open(context, { format, ...filter }) {
    const { actor } = context
    const pages = await pagesOf(context, (db, cursor) =>
      listAudit({ db, actor }, { ...filter, cursor, limit: rowsPerRead }),
    )
    const lines = format === 'csv' ? csvLines([...columns], pages, cellsOf) : jsonLines(pages)
    return tableFile(context, { noun: 'audit', format }, lines)
  },
})

function cellsOf(entry: AuditEntryView) {
  return columns.map((name) => {
    const value = entry[name]
    return typeof value === 'object' && value !== null ? JSON.stringify(value) : value
  })
}
