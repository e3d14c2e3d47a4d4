import { expect, test } from 'vitest'
import { actionText, conditionText, moved, noConditions, type Rule } from './rule-text.ts'

const nameOf = (id: string) => (id === 'c' ? 'Lab' : 'pc-01')

test('a rule is said in words', () => {
  expect(conditionText({ ...noConditions, macPrefix: '52:54', architecture: 'bios' })).toEqual([
    'MAC address begins with 52:54',
    'firmware is x86 BIOS',
  ])
  expect(conditionText(noConditions)).toEqual([])
  expect(actionText({ kind: 'ignore' }, nameOf)).toBe('Ignore')
  expect(actionText({ kind: 'adopt', namePattern: 'a-{n}', collectionId: 'c' }, nameOf)).toBe('Adopt as a-{n} into Lab')
  expect(actionText({ kind: 'copy', namePattern: '{mac}', templateDeviceId: 'd' }, nameOf)).toBe(
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
