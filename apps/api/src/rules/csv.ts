/**
 * A cell that a spreadsheet would read as a formula begins so; with apostrophes before it, it is what such a one was
 * made into.
 */
const formulaBegin = /^'*[=+\-@\t\r]/

/**
 * Returns one line of CSV (RFC 4180): every cell quoted, CRLF at its end. A text that a spreadsheet would execute as a
 * formula gets an apostrophe in front.
 */
export function csvLine(cells: (string | number | null)[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`
}

function csvCell(value: string | number | null): string {
  const text = value === null ? '' : String(value)
  const safe = typeof value === 'string' && formulaBegin.test(text) ? `'${text}` : text
  return `"${safe.replaceAll('"', '""')}"`
}
