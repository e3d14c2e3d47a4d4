import { expect, test } from 'vitest'
import { arrangeSteps } from './version-step-text'

test('the next step of each access is a button', () => {
  const first = (...allowedSteps: Parameters<typeof arrangeSteps>[0]['allowedSteps']) =>
    arrangeSteps({ allowedSteps }).first
  expect(first('seal', 'discard')).toEqual(['seal', 'discard'])
  expect(first('promote', 'startMaintenance', 'merge', 'delete')).toEqual(['promote'])
  expect(first('promote', 'cancelRelease', 'startMaintenance', 'merge')).toEqual(['promote', 'cancelRelease'])
  expect(first('startMaintenance', 'override', 'merge', 'delete')).toEqual(['startMaintenance'])
  expect(first('clearOverride', 'revert', 'startMaintenance', 'merge')).toEqual(['clearOverride'])
  expect(first('revert', 'startMaintenance', 'override', 'merge', 'delete')).toEqual(['revert'])
})

test('the rest is a menu, in which note and labels can always be edited', () => {
  expect(arrangeSteps({ allowedSteps: [] })).toEqual({ first: [], more: ['label'] })
  expect(arrangeSteps({ allowedSteps: ['override', 'delete'] })).toEqual({
    first: [],
    more: ['override', 'label', 'delete'],
  })
  expect(arrangeSteps({ allowedSteps: ['override', 'merge', 'delete'] })).toEqual({
    first: [],
    more: ['override', 'merge', 'label', 'delete'],
  })
})
