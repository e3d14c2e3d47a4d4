import { expect, test } from 'vitest'
import { manyInput, noChoices } from './many-fields'

test('what is not chosen stays as it is', () => {
  expect(manyInput(noChoices)).toEqual({})
})

test('a choice is said as the API takes it, and what is inherited is taken away', () => {
  expect(manyInput({ vdisk: 'v1', programs: 'set inherited', menu: 'm1', type: 'test' })).toEqual({
    vdiskId: 'v1',
    bootProgramSet: 'inherited',
    deviceType: 'test',
    menu: { choice: 'own', menuId: 'm1' },
  })
  expect(manyInput({ vdisk: 'collection', programs: 'inherited', menu: 'none', type: '' })).toEqual({
    vdiskId: null,
    bootProgramSet: null,
    menu: { choice: 'none' },
  })
})
