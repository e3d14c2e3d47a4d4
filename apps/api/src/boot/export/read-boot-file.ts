import { z } from 'zod'
import type { ServiceContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import { traceparentOf } from '../../rules/tracer.ts'
import { bootFileName } from '../boot-file-name.ts'
import { getBoot } from '../get-boot.ts'
import { getUsual } from '../get-usual.ts'
import { findBoot } from '../read-boots.ts'
import { bootGetInput } from '../schema.ts'
import { type ExportedBoot, exportedBoot } from './exported-boot.ts'
import { findCausingSpan } from './find-causing-span.ts'
import { otlpTrace } from './otlp-trace.ts'
import { pathTable } from './path-table.ts'
import { perfettoTrace } from './perfetto-trace.ts'

export const bootFileInput = bootGetInput.extend({
  format: z
    .enum(['json', 'csv', 'otlp', 'perfetto'])
    .default('json')
    .describe(
      '`json`: all that is known of the boot, with its critical path; `csv`: the critical path, phases and steps for spreadsheets; `otlp`: a trace for OpenTelemetry collectors; `perfetto`: a trace for ui.perfetto.dev, which shows it in the browser without an upload.',
    ),
})
type BootFileFormat = z.output<typeof bootFileInput>['format']

interface BootFile {
  name: string
  type: string
  text: string
}

export const bootFileTypes = { json: 'application/json', csv: 'text/csv; charset=utf-8' }

const forms: Record<BootFileFormat, { extension: string; type: string; write: (exported: ExportedBoot) => string }> = {
  json: { extension: 'json', type: bootFileTypes.json, write: (exported) => JSON.stringify(exported, null, 2) },
  csv: { extension: 'csv', type: bootFileTypes.csv, write: pathTable },
  otlp: { extension: 'otlp.json', type: bootFileTypes.json, write: (exported) => JSON.stringify(otlpTrace(exported)) },
  perfetto: {
    extension: 'perfetto.json',
    type: bootFileTypes.json,
    write: (exported) => JSON.stringify(perfettoTrace(exported)),
  },
}

/** A boot as a file to save. Throws `not_found`. */
export async function readBootFile(
  context: Pick<ServiceContext, 'db' | 'actor' | 'clock'>,
  { bootId, format, detailKeptDays }: { bootId: string; format: BootFileFormat; detailKeptDays: number },
): Promise<BootFile> {
  const row = await findBoot(context, bootId)
  if (!row) throw new AppError('not_found')
  const boot = await getBoot(context, { bootId, detailKeptDays })
  const usual = await getUsual(context, bootId)
  const { extension, type, write } = forms[format]
  const cause = await findCausingSpan(context, row)
  const exported = exportedBoot(boot, { usual, startedBy: cause && traceparentOf(cause) })
  return { name: bootFileName(row, extension), type, text: write(exported) }
}
