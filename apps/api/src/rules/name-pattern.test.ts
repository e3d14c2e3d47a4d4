import { describe, expect, test } from 'vitest'
import { nameOf, namePattern, suggestedName } from './name-pattern.ts'

const mac = '52:54:00:0a:0b:0c'

describe('a name pattern', () => {
  test.each([
    ['lab-{n}', [], 'lab-1'],
    ['lab-{n}', ['lab-1', 'lab-3'], 'lab-2'],
    ['lab-{nnn}', ['lab-001'], 'lab-002'],
    ['{nn}', ['01', '02'], '03'],
    ['pc-{mac}', [], 'pc-52-54-00-0a-0b-0c'],
    ['{mac}', ['52-54-00-0a-0b-0c'], '52-54-00-0a-0b-0c-2'],
    ['reception', [], 'reception'],
    ['reception', ['reception', 'reception-2'], 'reception-3'],
  ])('%s beside %j names a device %s', (pattern, taken, name) => {
    expect(nameOf(pattern, mac, new Set(taken))).toBe(name)
  })

  test('continues beyond its zeros', () => {
    const taken = new Set(Array.from({ length: 12 }, (_, index) => `a${index + 1}`))
    expect(nameOf('a{n}', mac, taken)).toBe('a13')
    expect(
      nameOf('b{nn}', mac, new Set(Array.from({ length: 99 }, (_, n) => `b${String(n + 1).padStart(2, '0')}`))),
    ).toBe('b100')
  })

  test.each([
    ['', /Enter a name/],
    ['lab-{x}', /Use {n}/],
    ['lab-{n', /Use {n}/],
    ['<b>{n}', /consists of letters/],
    ['a b', /consists of letters/],
    ['lab-', /begins and ends/],
    ['a'.repeat(64), /longer than 63/],
    [`${'a'.repeat(50)}{mac}`, /longer than 63/],
    ['läb-{n}', /consists of letters/],
  ])('%s is refused, with what is wrong', (pattern, message) => {
    expect(namePattern.safeParse(pattern).error?.issues[0]?.message).toMatch(message)
  })
})

test.each([
  ['LAB-PC7', [], 'lab-pc7'],
  ['lab-pc7', ['lab-pc7'], '52-54-00-0a-0b-0c'],
  ['<script>', [], '52-54-00-0a-0b-0c'],
  ['../../etc', [], '52-54-00-0a-0b-0c'],
  [null, [], '52-54-00-0a-0b-0c'],
])('a device that calls itself %s, beside %j, is suggested as %s', (hostName, taken, name) => {
  expect(suggestedName({ hostName, mac }, new Set(taken))).toBe(name)
})
