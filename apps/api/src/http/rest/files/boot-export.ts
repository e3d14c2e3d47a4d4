import { listBoots } from '../../../boot/list-boots.ts'
import { type BootSummary, bootFilterInput } from '../../../boot/schema.ts'
import { fileOperation } from './file-operation.ts'
import { csvLines, jsonLines, pagesOf, rowsPerRead, tableFile, tableFormat, tableTypes } from './table-file.ts'

const columns = [
  'startedAt',
  'deviceName',
  'mac',
  'outcome',
  'failedPhase',
  'failedCause',
  'lastPhase',
  'totalUs',
  'siteName',
  'edgeName',
  'bytesOut',
  'retries',
  'menuEntry',
  'storage',
  'id',
  'deviceId',
  'siteId',
  'edgeId',
] as const

const hardwareColumns = ['model', 'processors', 'memoryGib', 'networkCard'] as const

export const bootExport = fileOperation({
  id: 'boot.export',
  path: '/boot-exports',
  summary: 'Boots as a file',
  description: 'All boots that the filters of the list leave, in its order, without a limit.',
  policy: { permission: 'boot.read', place: 'visible' },
  input: bootFilterInput.extend(tableFormat),
  types: tableTypes,
  async open(context, { format, ...filter }) {
    const { actor, clock } = context
    const pages = await pagesOf(context, (db, cursor) =>
      listBoots({ db, clock, actor }, { ...filter, cursor, limit: rowsPerRead }),
    )
    const lines =
      format === 'csv' ? csvLines([...columns, ...hardwareColumns, 'origin'], pages, cellsOf) : jsonLines(pages)
    return tableFile(context, { noun: 'boots', format }, lines)
  },
})

function cellsOf(boot: BootSummary) {
  return [
    ...columns.map((name) => (name === 'outcome' ? (boot.outcome ?? 'booting') : boot[name])),
    ...hardwareColumns.map((name) => boot.hardware[name]),
    boot.generated ? 'generated' : boot.simulated ? 'simulated' : 'device',
  ]
}
