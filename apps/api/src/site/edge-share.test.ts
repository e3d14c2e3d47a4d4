import { expect, test } from 'vitest'
import { type SharingEdge, sharesOf } from './edge-share.ts'

const edge = (id: string, changes: Partial<SharingEdge> = {}): SharingEdge => ({
  id,
  online: true,
  revokedAt: null,
  weight: 10,
  draining: false,
  ...changes,
})
const shares = (...edges: SharingEdge[]) => [...sharesOf(edges).values()]

test('shares follow the weights', () => {
  expect(shares(edge('a'), edge('b', { weight: 30 }))).toEqual([25, 75])
})

test('who is away, revoked, drained or of weight 0 has none while another is left', () => {
  expect(shares(edge('a', { online: false }), edge('b'))).toEqual([0, 100])
  expect(shares(edge('a', { revokedAt: '2026-11-20T12:00:00Z' }), edge('b'))).toEqual([0, 100])
  expect(shares(edge('a', { draining: true }), edge('b'))).toEqual([0, 100])
  expect(shares(edge('a', { weight: 0 }), edge('b'))).toEqual([0, 100])
})

test('where no other is left the drained and the weightless have them', () => {
  expect(shares(edge('a', { draining: true }), edge('b', { online: false }))).toEqual([100, 0])
  expect(shares(edge('a', { weight: 0 }), edge('b', { weight: 0 }))).toEqual([50, 50])
  expect(shares(edge('a', { weight: 0 }), edge('b', { draining: true }))).toEqual([100, 0])
  expect(shares(edge('a', { online: false }))).toEqual([0])
})
