import { describe, expect, test } from 'vitest'
import { AppError } from '../errors/app-error.ts'
import { cursorAfter, numberOf } from './event-cursor.ts'
import type { EventSort } from './schema.ts'

const numbering = { incarnation: 7, lastNumber: 50, removedNumber: 20 }

function codeOf(cursor: string, sort: EventSort): string {
  try {
    return `continues after ${numberOf(cursor, numbering, sort)}`
  } catch (error) {
    if (error instanceof AppError) return error.code
    throw error
  }
}

const after = (number: number, sort: EventSort, incarnation = 7) =>
  cursorAfter(number, { ...numbering, incarnation }, sort)

describe('a cursor', () => {
  test.each(['number', '-number'] as const)('continues where it was made with sort=%s', (sort) => {
    expect(codeOf(after(20, sort), sort)).toBe('continues after 20')
    expect(codeOf(after(50, sort), sort)).toBe('continues after 50')
  })

  test('before events that were removed is refused, unless the list leads away from them', () => {
    expect(codeOf(after(19, 'number'), 'number')).toBe('cursor_expired')
    expect(codeOf(after(19, '-number'), '-number')).toBe('continues after 19')
  })

  test('of another history of the database is refused: its numbers are those of other events', () => {
    expect(codeOf(after(30, 'number', 6), 'number')).toBe('cursor_expired')
    expect(codeOf(after(51, 'number'), 'number')).toBe('cursor_expired')
  })

  test('of the other order is refused, and both are named', () => {
    expect(() => numberOf(after(30, '-number'), numbering, 'number')).toThrow('sort=-number, not number')
  })

  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  test.each([
    ['no text of ours', '%%%'],
    ['no JSON', Buffer.from('[7,').toString('base64url')],
    ['one of another list', encoded(['2026-11-27T07:00:00.000Z', '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701'])],
    ['a number below zero', encoded([7, -1, 'number'])],
    ['a number that is none', encoded([7, '30', 'number'])],
    ['half a number', encoded([7, 1.5, 'number'])],
    ['a number beyond any', encoded([7, 1e300, 'number'])],
    ['an order that is none', encoded([7, 30, 'type'])],
  ])('that is %s is invalid', (_name, cursor) => {
    expect(codeOf(cursor, 'number')).toBe('invalid')
  })
})
