import { expect, test } from 'vitest'
import { diskCells, type FileRead, percentOf, sortFiles } from './files-read'

const file = (name: string, storageUs: number, bytes: number): FileRead => ({
  name,
  kind: 'file',
  reads: 1,
  bytes,
  coldReads: 0,
  storageUs,
  firstUs: 0,
})

test('files are sorted by any column, in either direction', () => {
  const files = [file('/b', 5, 100), file('/a', 9, 50), file('/c', 1, 200)]
  const names = (order: string) => sortFiles(files, order).map(({ name }) => name)
  expect(names('-storageUs')).toEqual(['/a', '/b', '/c'])
  expect(names('bytes')).toEqual(['/a', '/b', '/c'])
  expect(names('-bytes')).toEqual(['/c', '/b', '/a'])
  expect(names('name')).toEqual(['/a', '/b', '/c'])
  expect(names('-name')).toEqual(['/c', '/b', '/a'])
})

test('a cell of the disk shows how much of it was read, and when for the first time', () => {
  const cells = [
    { index: 0, bytes: 512, firstUs: 1_000_000 },
    { index: 2, bytes: 4096, firstUs: 3_000_000 },
    { index: 9, bytes: 1024, firstUs: 2_000_000 },
  ]
  const shown = diskCells({ cells, cellBytes: 1024 })
  expect(shown.map(({ share }) => share)).toEqual([0.5, 1, 1])
  expect(shown.map(({ when }) => when)).toEqual([0, 1, 0.5])
  expect(shown[1]?.text).toBe('2.00\u00a0KiB to 3.00\u00a0KiB: 4.00\u00a0KiB read, first 3.0\u00a0s after the start')
  expect(diskCells({ cells: cells.slice(0, 1), cellBytes: 1024 })[0]?.when).toBe(0)
})

test('only all is 100 %', () => {
  expect([0, 0.004, 0.956, 0.9999, 1].map(percentOf)).toEqual([
    '0\u00a0%',
    '0\u00a0%',
    '96\u00a0%',
    '99\u00a0%',
    '100\u00a0%',
  ])
})
