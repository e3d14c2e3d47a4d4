import { expect, test } from 'vitest'
import { canonicalJson, canonicalMembers, type Json, joinMembers } from './canonical-json.ts'

test('keys are in order of their code units at every depth, and what is undefined is left out', () => {
  const value = { b: [{ z: 1, a: null, Z: undefined }], a: 'é"', 10: true, 9: { ä: 1, a: [] } }
  expect(canonicalJson(value)).toBe('{"10":true,"9":{"a":[],"ä":1},"a":"é\\"","b":[{"a":null,"z":1}]}')
})

/** Returns objects with other keys each, some of them nested. */
function listOf(length: number): Json[] {
  return Array.from({ length }, (_, index) => {
    const some: { [key: string]: Json | undefined } = {
      [`k${index % 7}`]: index,
      b: undefined,
      10: 'x',
      9: `"${index}"`,
    }
    if (index % 3 === 0) some.nested = [{ y: index, __proto__: null, x: { 2: null, 1: [[]] } } as Json, index / 3]
    return index % 11 === 0 ? [some] : some
  })
}

test('a long list is written as its items are one by one', () => {
  const list = listOf(500)
  expect(canonicalJson(list)).toBe(`[${list.map((item) => canonicalJson(item)).join(',')}]`)
  expect(canonicalJson({ list })).toBe(`{"list":${canonicalJson(list)}}`)
  expect(JSON.parse(canonicalJson(list))).toEqual(JSON.parse(JSON.stringify(list)))
})

test('the order in which keys were set makes no difference', () => {
  const turned = listOf(500).map((item) =>
    Array.isArray(item) || item === null || typeof item !== 'object'
      ? item
      : Object.fromEntries(Object.entries(item).toReversed()),
  )
  expect(canonicalJson(turned)).toBe(canonicalJson(listOf(500)))
})

test('an object is the same text by its members, one of which another replaces', () => {
  const value = { b: [1, { d: 2, c: 3 }], a: 'x', absent: undefined }
  const members = canonicalMembers(value)
  expect(joinMembers(members)).toBe(canonicalJson(value))
  expect(joinMembers(new Map([...members, ...canonicalMembers({ a: 'y', z: null })]))).toBe(
    canonicalJson({ ...value, a: 'y', z: null }),
  )
})
