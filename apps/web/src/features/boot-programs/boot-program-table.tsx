import { EmptyState } from '../../components/page'
import { type Column, Table } from '../../components/table'
import { Mono } from '../../components/tag'
import { formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'
import { architectureText } from './boot-program-choice'

type BootProgram = RouterOutputs['edge']['get']['bootPrograms'][number]

const columns: Column<BootProgram>[] = [
  { title: 'File', cell: (program) => <Mono>{program.file}</Mono> },
  { title: 'Set', cell: (program) => program.set },
  {
    title: 'Program',
    from: 'sm',
    cell: (program) => (
      <>
        {program.kind} {program.version && <span className="text-ink-soft">{program.version}</span>}
      </>
    ),
  },
  { title: 'Architecture', from: 'sm', cell: (program) => architectureText[program.arch] },
  {
    title: 'Signed by',
    from: 'md',
    wide: true,
    cell: (program) =>
      program.signedBy.length === 0 ? (
        <span className="text-ink-faint">unsigned</span>
      ) : (
        <span className="block max-w-80 truncate" title={program.signedBy.join(', ')}>
          {program.signedBy.join(', ')}
        </span>
      ),
  },
  { title: 'Size', from: 'lg', align: 'right', cell: (program) => formatBytes(program.sizeBytes) },
  {
    title: 'SHA-256',
    from: 'xl',
    align: 'right',
    cell: (program) => (
      <span className="font-mono text-2xs text-ink-faint" title={program.sha256}>
        {program.sha256.slice(0, 12)}…
      </span>
    ),
  },
]

export function BootProgramTable({ programs }: { programs: BootProgram[] }) {
  return programs.length === 0 ? (
    <EmptyState
      title="No boot programs reported."
      text="To import boot programs, run bootfarm-edge boot-files. Older agents do not report boot programs."
    />
  ) : (
    <Table
      label="Boot programs on this edge"
      columns={columns}
      rows={programs}
      rowKey={({ set, file }) => `${set}/${file}`}
    />
  )
}
