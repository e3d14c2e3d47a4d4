import { z } from 'zod'
import { listTrials } from '../../../experiment/read-experiments.ts'
import { uuid } from '../../../rules/scalars.ts'
import { fileOperation } from './file-operation.ts'
import { csvLines, jsonLines, pagesOf, rowsPerRead, tableFile, tableFormat, tableTypes } from './table-file.ts'

const heading = ['cell', 'settings', 'device', 'repetition', 'state', 'reason', 'boot', 'ready_us', 'ended_at']

export const experimentExport = fileOperation({
  id: 'experiment.export',
  path: '/experiment-exports',
  summary: 'The boots of an experiment as a file',
  description: 'Every boot of an experiment with its settings, its device and how long it took.',
  policy: { permission: 'experiment.read', place: { kind: 'experiment', id: 'experimentId' } },
  input: z.object({ experimentId: uuid, ...tableFormat }),
  types: tableTypes,
  async open(context, { format, experimentId }) {
    const pages = await pagesOf(context, (db, cursor) =>
      listTrials({ db, actor: context.actor }, { experimentId, cursor, limit: rowsPerRead }),
    )
    const lines =
      format === 'jsonl'
        ? jsonLines(pages)
        : csvLines(heading, pages, (trial) => [
            trial.cell,
            trial.title,
            trial.deviceName,
            trial.repetition + 1,
            trial.state,
            trial.reason,
            trial.bootId,
            trial.durationUs,
            trial.endedAt,
          ])
    return tableFile(context, { noun: 'experiment', format }, lines)
  },
})
