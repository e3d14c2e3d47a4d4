import { expect, test } from 'vitest'
import { actionWords, conditionWords, moved, noConditions, type Rule } from './rule-words.ts'

const nameOf = (id: string) => (id === 'c' ? 'Lab' : 'pc-01')

test('a rule is said in words', () => {
  expect(conditionWords({ ...noConditions, macPrefix: '52:54', architecture: 'bios' })).toEqual([
    'MAC address begins with 52:54',
    'firmware is x86 BIOS',
  ])
  expect(conditionWords(noConditions)).toEqual([])
  expect(actionWords({ kind: 'ignore' }, nameOf)).toBe('Ignore')
  expect(actionWords({ kind: 'adopt', namePattern: 'a-{n}', collectionId: 'c' }, nameOf)).toBe(
    'Adopt as a-{n} into Lab',
  )
  expect(actionWords({ kind: 'copy', namePattern: '{mac}', templateDeviceId: 'd' }, nameOf)).toBe(
    'Adopt as {mac} using pc-01 as template',
  )
})

test('a rule moves up or down by one', () => {
  const rule = (macPrefix: string): Rule => ({
    conditions: { ...noConditions, macPrefix },
    action: { kind: 'ignore' },
  })
  const rules = ['01', '02', '03'].map(rule)
  const order = (changed: Rule[]) => changed.map(({ conditions }) => conditions.macPrefix)
  expect(order(moved(rules, 1, -1))).toEqual(['02', '01', '03'])
  expect(order(moved(rules, 1, 1))).toEqual(['01', '03', '02'])
})
