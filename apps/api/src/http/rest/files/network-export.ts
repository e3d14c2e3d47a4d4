import { getNetworkReport } from '../../../network/get-network-report.ts'
import { type NetworkReportView, networkReportInput } from '../../../network/schema.ts'
import { fileOperation } from './file-operation.ts'
import { csvLines, jsonLines, pagesOf, tableFile, tableFormat, tableTypes } from './table-file.ts'

type Path = NetworkReportView['paths'][number]

const ratios = ['toDevice', 'fromDevice', 'reordering'] as const
const columns = [
  'siteId',
  'siteName',
  'segment',
  'card',
  'bootCount',
  'deviceCount',
  ...ratios.flatMap((name) => [`${name}Packets`, `${name}Lost`, `${name}Low`, `${name}High`]),
  'rttP50Us',
  'rttP95Us',
  'links',
  'faults',
  'checks',
]

export const networkExport = fileOperation({
  id: 'network.export',
  path: '/network-exports',
  summary: 'The network report as a file',
  description: 'A line for each segment and network card, the worst first.',
  policy: { permission: 'boot.read', place: 'visible' },
  input: networkReportInput.extend(tableFormat),
  types: tableTypes,
  async open(context, { format, ...asked }) {
    const { actor, clock } = context
    const pages = await pagesOf(context, async (db) => {
      const { paths } = await getNetworkReport({ db, actor, clock }, asked)
      return { items: paths, nextCursor: null }
    })
    const lines = format === 'csv' ? csvLines(columns, pages, cellsOf) : jsonLines(pages)
    return tableFile(context, { noun: 'network', format }, lines)
  },
})

function cellsOf(path: Path): (string | number | null)[] {
  const { siteId, siteName, segment, card, bootCount, deviceCount, rtt, links, faults } = path
  return [
    siteId,
    siteName,
    segment,
    card,
    bootCount,
    deviceCount,
    ...ratios.flatMap((name) => {
      const ratio = path[name]
      return ratio ? [ratio.packets, ratio.lost, ratio.low, ratio.high] : [null, null, null, null]
    }),
    rtt?.p50Us ?? null,
    rtt?.p95Us ?? null,
    links.map(({ linkMbit, duplex, deviceCount }) => `${linkMbit ?? ''} ${duplex ?? ''} x${deviceCount}`).join('; '),
    faults.map(({ text }) => text).join(' '),
    faults.map(({ check }) => check).join(' '),
  ]
}
