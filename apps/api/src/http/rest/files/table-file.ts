import { Readable } from 'node:stream'
import { inOrganization, type TenantDb } from '@bootfarm/db'
import { z } from 'zod'
import { csvLine } from '../../../rules/csv.ts'
import type { FileContext, SentFile } from './file-operation.ts'

export const tableFormat = {
  format: z
    .enum(['csv', 'jsonl'])
    .default('csv')
    .describe('`csv`: for spreadsheets; `jsonl`: one object in JSON per line, as the list has them.'),
}
type TableFormat = z.output<(typeof tableFormat)['format']>

const typeOf = { csv: 'text/csv; charset=utf-8', jsonl: 'application/jsonl' }
export const tableTypes = ['text/csv', 'application/jsonl']

/** Read at once, in a transaction of its own: a file never holds more in memory, and holds up nobody between. */
export const rowsPerRead = 500

export interface Page<Row> {
  items: Row[]
  nextCursor: string | null
}

export type ReadPage<Row> = (db: TenantDb, cursor: string | null) => Promise<Page<Row>>

/** All pages of a list, one after the other, as a file of lines. */
export function tableFile(
  { clock }: FileContext,
  { noun, format }: { noun: string; format: TableFormat },
  lines: AsyncGenerator<string>,
): SentFile {
  const day = clock().toISOString().slice(0, 10)
  return { name: `${noun}-${day}.${format}`, type: typeOf[format], body: Readable.from(lines) }
}

/** Each page takes a turn of its reader's account; none is held while the file is sent. */
export async function* pagesOf<Row>({ db, actor, takeTurn }: FileContext, read: ReadPage<Row>): AsyncGenerator<Row[]> {
  let cursor: string | null = null
  do {
    const endTurn = await takeTurn()
    const reading: Promise<Page<Row>> = inOrganization(db, actor.organizationId, (tenant) => read(tenant, cursor))
    const page = await reading.finally(endTurn)
    yield page.items
    cursor = page.nextCursor
  } while (cursor !== null)
}

export async function* jsonLines<Row>(pages: AsyncGenerator<Row[]>): AsyncGenerator<string> {
  for await (const rows of pages) yield rows.map((row) => `${JSON.stringify(row)}\n`).join('')
}

/** A byte order mark: without it, spreadsheets take UTF-8 for something else. */
const byteOrderMark = '\uFEFF'

export async function* csvLines<Row>(
  heading: string[],
  pages: AsyncGenerator<Row[]>,
  cellsOf: (row: Row) => (string | number | null)[],
): AsyncGenerator<string> {
  yield byteOrderMark + csvLine(heading)
  for await (const rows of pages) yield rows.map((row) => csvLine(cellsOf(row))).join('')
}
