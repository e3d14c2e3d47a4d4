import { expect, test } from 'vitest'
import { arrangeSteps } from './version-step-text'

test('the next step of each access is a button', () => {
  const first = (...allowedSteps: Parameters<typeof arrangeSteps>[0]['allowedSteps']) =>
    arrangeSteps({ allowedSteps, atEdges: [] }).first
  expect(first('seal', 'discard')).toEqual(['seal', 'discard'])
  expect(first('promote', 'startMaintenance', 'merge', 'delete')).toEqual(['promote'])
  expect(first('promote', 'cancelRelease', 'startMaintenance', 'merge')).toEqual(['promote', 'cancelRelease'])
  expect(first('startMaintenance', 'override', 'merge', 'delete')).toEqual(['startMaintenance'])
  expect(first('clearOverride', 'revert', 'startMaintenance', 'merge')).toEqual(['clearOverride'])
  expect(first('revert', 'startMaintenance', 'override', 'merge', 'delete')).toEqual(['revert'])
})

test('the rest is a menu, in which note and labels can always be edited', () => {
  expect(arrangeSteps({ allowedSteps: [], atEdges: [] })).toEqual({ first: [], more: ['label'] })
  expect(arrangeSteps({ allowedSteps: ['override', 'delete'], atEdges: [] })).toEqual({
    first: [],
    more: ['override', 'label', 'delete'],
  })
  expect(arrangeSteps({ allowedSteps: ['override', 'merge', 'delete'], atEdges: [] })).toEqual({
    first: [],
    more: ['override', 'merge', 'label', 'delete'],
  })
})

test('a version is exported where an edge holds all of it', () => {
  const at = { edgeId: 'e', edgeName: 'edge-1', state: 'present', isLayer: false } as const
  const more = (atEdges: Parameters<typeof arrangeSteps>[0]['atEdges']) =>
    arrangeSteps({ allowedSteps: ['delete'], atEdges }).more
  expect(more([at])).toEqual(['export', 'label', 'delete'])
  expect(more([{ ...at, state: 'importing' }])).toEqual(['label', 'delete'])
  expect(more([{ ...at, isLayer: true }])).toEqual(['label', 'delete'])
})
