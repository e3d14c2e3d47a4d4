import { EmptyState, Panel } from '../../components/page'
import { Table } from '../../components/table'
import { formatBytes, formatCount, formatDuration } from '../../lib/format-quantity'
import { type Comparison, signedDuration } from './compare-text'

type ComparedFile = Comparison['files'][number]

/** The files that these boots wait longer for than those of the baseline. */
export function CompareFiles({ comparison: { files, set, base } }: { comparison: Comparison }) {
  const grown = files.filter((file) => file.set.storageUs > file.base.storageUs)
  const counts = `${formatCount(set.fileLists)} of these boots, ${formatCount(base.fileLists)} of the baseline`
  return (
    <Panel title="Files that became hot" flush aside={<span>{counts}</span>}>
      {grown.length === 0 ? (
        <EmptyState
          title="No file became hot."
          text={
            set.fileLists === 0 || base.fileLists === 0
              ? 'Edges list the files that a boot reads once it is over; one of the sets has no such boot.'
              : 'These boots wait for no file longer than those of the baseline.'
          }
        />
      ) : (
        <Table
          label="Files that became hot"
          rows={grown}
          rowKey={({ kind, name }) => `${kind} ${name}`}
          columns={[
            {
              title: 'File',
              wide: true,
              cell: ({ name }) => <span className="break-all font-mono text-xs">{name}</span>,
            },
            {
              title: 'Wait',
              meaning: 'Mean wait of these boots less that of the baseline',
              align: 'right',
              cell: grownText,
            },
            { title: 'Baseline', align: 'right', from: 'sm', cell: (file) => waitText(file.base) },
            { title: 'These', align: 'right', from: 'sm', cell: (file) => waitText(file.set) },
            {
              title: 'Listed by',
              meaning: 'Boots that have it among the files that took the most, of the baseline and of these',
              align: 'right',
              from: 'md',
              cell: (file) => `${file.base.boots} → ${file.set.boots}`,
            },
          ]}
        />
      )}
    </Panel>
  )
}

function grownText({ set, base }: ComparedFile): string {
  return signedDuration(set.storageUs - base.storageUs)
}

function waitText({ storageUs, bytes }: ComparedFile['set']): string {
  return `${formatDuration(storageUs)} for ${formatBytes(bytes)}`
}
