import { expect, test } from 'vitest'
import { guideSteps } from './guide-steps'

const nothing = { farms: [], sites: [], edges: [], vdisks: [], collections: [], devices: [], boots: [] }
const openOf = (facts: Parameters<typeof guideSteps>[0]) =>
  guideSteps(facts).flatMap(({ key, done }) => (done ? [] : key))

test('in an empty organization everything is to be done', () => {
  expect(openOf(nothing)).toHaveLength(9)
})

test('a step is done by what is there, and by nothing less', () => {
  const silent = [{ online: false, revokedAt: null }]
  expect(openOf({ ...nothing, edges: [{ online: true, revokedAt: '2026-01-01' }] })).toContain('edge')
  expect(openOf({ ...nothing, edges: silent })).toContain('online')
  expect(openOf({ ...nothing, edges: silent })).not.toContain('edge')
  expect(openOf({ ...nothing, vdisks: [{ newestVersion: null }] })).toContain('vdisk')
  expect(openOf({ ...nothing, collections: [{ vdiskId: null }] })).toContain('collection')
})
