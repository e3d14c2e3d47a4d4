import { Panel } from '../../../components/page'
import { type Column, Table } from '../../../components/table'
import { Mono, Tag } from '../../../components/tag'
import { countOf, formatBytes, formatCount, formatDuration, formatOffset } from '../../../lib/format-quantity'
import type { BootDetail } from '../boot-types'

type Transfer = BootDetail['transfers'][number]

const outcomes: Record<NonNullable<Transfer['outcome']>, { word: string; meaning: string } | null> = {
  done: null,
  timeout: { word: 'timed out', meaning: 'The device stopped acknowledging.' },
  refused: { word: 'refused', meaning: 'The device ended the transfer with an error.' },
  aborted: { word: 'aborted', meaning: 'The file could not be read, or the device requested another one instead.' },
  not_found: { word: 'not found', meaning: 'This edge has no such file. Loaders try names that need not exist.' },
}
const unfinished = { word: 'not finished', meaning: 'The edge has not seen the end of this transfer.' }
const loading = { word: 'loading', meaning: 'This transfer is in progress.' }

/** How a transfer ended; null where it ended well. */
export function transferState({ outcome }: Pick<Transfer, 'outcome'>, running: boolean) {
  if (outcome !== null) return outcomes[outcome]
  return running ? loading : unfinished
}

function columnsOf(running: boolean): Column<Transfer>[] {
  return [
    { title: 'File', wide: true, cell: (transfer) => <FileName transfer={transfer} running={running} /> },
    { title: 'Protocol', cell: ({ protocol }) => protocol.toUpperCase() },
    {
      title: 'Start',
      meaning: 'The first request, since the start of the boot',
      align: 'right',
      from: 'md',
      cell: ({ startUs }) => formatOffset(startUs),
    },
    {
      title: 'Time',
      meaning: 'From the first request to the last packet of the last one',
      align: 'right',
      cell: ({ durationUs }) => formatDuration(durationUs),
    },
    { title: 'Bytes', align: 'right', cell: ({ bytes }) => formatBytes(bytes) },
    {
      title: 'Retransmitted',
      meaning: 'Blocks of TFTP or segments of TCP that were sent again',
      align: 'right',
      cell: ({ retransmitted }) => formatCount(retransmitted),
    },
    { title: 'Requests', align: 'right', from: 'md', cell: ({ requests }) => formatCount(requests) },
  ]
}

function FileName({ transfer, running }: { transfer: Transfer; running: boolean }) {
  const state = transferState(transfer, running)
  return (
    <span className="inline-flex max-w-[36rem] items-center gap-2 max-sm:max-w-48">
      <span className="truncate" title={transfer.name}>
        <Mono>{transfer.name}</Mono>
      </span>
      {state && (
        <span title={state.meaning} className="shrink-0">
          <Tag>{state.word}</Tag>
        </span>
      )}
    </span>
  )
}

/** The files that the device loaded before its stream; nothing where there are none, or the edge is too old. */
export function TransfersPanel({ boot }: { boot: BootDetail }) {
  const { transfers, transfersLeftOut } = boot
  if (transfers.length === 0) return null
  const aside = [
    countOf(transfers.length, 'file'),
    formatBytes(transfers.reduce((sum, { bytes }) => sum + bytes, 0)),
    ...(transfersLeftOut > 0 ? [`${countOf(transfersLeftOut, 'more request')} not listed`] : []),
  ]
  return (
    <Panel title="Boot files" aside={<span>{aside.join(', ')}</span>} flush>
      <Table
        label="Boot files"
        columns={columnsOf(boot.outcome === null)}
        rows={transfers}
        rowKey={({ protocol, name }) => `${protocol} ${name}`}
      />
    </Panel>
  )
}
