import { expect, test } from 'vitest'
import { toAppError } from './to-app-error.ts'

/** Prisma's error for a raw statement that PostgreSQL refused. */
function rawQueryError(code: string): Error {
  const message = `\nInvalid \`prisma.$queryRaw()\` invocation:\n\n\nRaw query failed. Code: \`${code}\`. Message: \`refused\``
  return Object.assign(new Error(message), { code: 'P2010' })
}

test('what PostgreSQL refuses of a raw statement is known by its own code', () => {
  // Deadlock, too many connections; a row that is still named; what nobody foresaw.
  for (const code of ['40P01', '53300']) expect(toAppError(rawQueryError(code)).code).toBe('unavailable')
  expect(toAppError(rawQueryError('23503')).code).toBe('conflict')
  expect(toAppError(rawQueryError('42601')).code).toBe('internal')
})
