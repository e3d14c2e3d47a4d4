import { expect, test } from 'vitest'
import { manyInput, noChoices, vdiskLabel } from './many-fields'

test('a vDisk is labelled with the name of its farm, however many farms there are', () => {
  const newestVersion = { id: 'v7', number: 7, sizeBytes: 1, createdAt: '2026-11-20T12:00:00.000Z' }
  expect(vdiskLabel({ name: 'debian', farmName: 'Farm 101', newestVersion })).toBe('debian, Farm 101')
  expect(vdiskLabel({ name: 'debian', farmName: 'Farm 101', newestVersion: null })).toBe(
    'debian, Farm 101 (no version yet)',
  )
})

test('a setting without a choice is not sent', () => {
  expect(manyInput(noChoices)).toEqual({})
})

test('a choice is sent as the API accepts it, and an inherited setting as null', () => {
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
