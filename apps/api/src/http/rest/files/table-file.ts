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

/**
 * Each page takes a turn of its reader's account; none is held while the file is sent. The first one is read at once:
 * what is wrong with the request is an answer, and not a file that ends early.
 */
export async function pagesOf<Row>(context: FileContext, read: ReadPage<Row>): Promise<AsyncGenerator<Row[]>> {
  const first = await readPage(context, read, null)
  return pagesFrom(context, read, first)
}

async function* pagesFrom<Row>(context: FileContext, read: ReadPage<Row>, first: Page<Row>): AsyncGenerator<Row[]> {
  let page = first
  yield page.items
  while (page.nextCursor !== null) {
    page = await readPage(context, read, page.nextCursor)
    yield page.items
  }
}

async function readPage<Row>(
  { db, actor, takeTurn }: FileContext,
  read: ReadPage<Row>,
  cursor: string | null,
): Promise<Page<Row>> {
  const endTurn = await takeTurn()
  return inOrganization(db, actor.organizationId, (tenant) => read(tenant, cursor)).finally(endTurn)
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
