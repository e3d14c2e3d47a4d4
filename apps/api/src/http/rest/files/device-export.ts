import { deviceCells, deviceHeading } from '../../../device/device-csv.ts'
import { exportPage, personalityNames } from '../../../device/export-devices.ts'
import { listDevices } from '../../../device/list-devices.ts'
import { deviceFilterInput } from '../../../device/schema.ts'
import { fileOperation } from './file-operation.ts'
import { csvLines, jsonLines, pagesOf, rowsPerRead, tableFile, tableFormat, tableTypes } from './table-file.ts'

export const deviceExport = fileOperation({
  id: 'device.export',
  path: '/device-exports',
  summary: 'Devices as a file',
  description:
    'All devices that the filters of the list leave, in its order, without a limit. A CSV file of one site can be imported there again.',
  policy: { permission: 'device.read', place: 'visible' },
  input: deviceFilterInput.extend(tableFormat),
  types: tableTypes,
  async open(context, { format, ...filter }) {
    const { clock, actor } = context
    const read = { ...filter, limit: rowsPerRead }
    if (format === 'jsonl') {
      const pages = await pagesOf(context, (db, cursor) => listDevices({ db, clock, actor }, { ...read, cursor }))
      return tableFile(context, { noun: 'devices', format }, jsonLines(pages))
    }
    // The heading names every personality variable, so the devices are read twice. One that is new in between has no
    // column.
    const variables = await pagesOf(context, (db, cursor) => personalityNames({ db, actor }, { ...read, cursor }))
    const names = new Set<string>()
    for await (const some of variables) for (const name of some.flat()) names.add(name)
    const columns = [...names].sort()
    const pages = await pagesOf(context, (db, cursor) => exportPage({ db, actor }, { ...read, cursor }))
    const lines = csvLines(deviceHeading(columns), pages, (device) => deviceCells(device, columns))
    return tableFile(context, { noun: 'devices', format }, lines)
  },
})
