import { expect, test } from 'vitest'
import { layOutChain } from './chain-layout'

const version = (id: string, parentVersionId: string | null) => ({ id, parentVersionId })

test('a chain without branches is one lane', () => {
  expect(layOutChain([version('3', '2'), version('2', '1'), version('1', null)])).toEqual([
    { id: '3', lane: 0, passing: [], fromAbove: [], goesOn: true },
    { id: '2', lane: 0, passing: [], fromAbove: [0], goesOn: true },
    { id: '1', lane: 0, passing: [], fromAbove: [0], goesOn: false },
  ])
})

test('a branch has a lane of its own until the version that it was made from', () => {
  expect(layOutChain([version('3', '1'), version('2', '1'), version('1', null)])).toEqual([
    { id: '3', lane: 0, passing: [], fromAbove: [], goesOn: true },
    { id: '2', lane: 1, passing: [0], fromAbove: [], goesOn: true },
    { id: '1', lane: 0, passing: [], fromAbove: [0, 1], goesOn: false },
  ])
})

test('a merged base stands beside the chain, and its lane is free again below it', () => {
  const rows = layOutChain([version('4', '2'), version('3', null), version('2', '1'), version('1', null)])
  expect(rows.map(({ lane }) => lane)).toEqual([0, 1, 0, 0])
  expect(rows[1]).toEqual({ id: '3', lane: 1, passing: [0], fromAbove: [], goesOn: false })
  expect(rows[2]?.passing).toEqual([])
})

test('a parent that is gone leaves its version a beginning', () => {
  expect(layOutChain([version('2', 'gone')])).toEqual([{ id: '2', lane: 0, passing: [], fromAbove: [], goesOn: false }])
})

test('more branches than lanes are drawn over the last one', () => {
  const tips = Array.from({ length: 9 }, (_, index) => version(`tip ${index}`, 'base'))
  const rows = layOutChain([...tips, version('base', null)])
  expect(Math.max(...rows.map(({ lane }) => lane))).toBe(4)
})
