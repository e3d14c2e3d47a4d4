import { expect, test } from 'vitest'
import { cellAfterKey, cellAt, cellPlace, layOutCells } from './cell-layout.ts'

const spaces = [
  { width: 1180, height: 500 },
  { width: 342, height: 422 },
  { width: 1900, height: 670 },
]

test('cells of every count are within the width, none over another, and within the height if they can be', () => {
  for (const space of spaces)
    for (const count of [1, 2, 7, 60, 500, 1234, 5000]) {
      const layout = layOutCells(count, space)
      const last = cellPlace(layout, count - 1)
      expect(layout.columns * layout.pitch).toBeLessThanOrEqual(space.width + layout.pitch - layout.size)
      expect(layout.columns * layout.rows).toBeGreaterThanOrEqual(count)
      expect(last.y + layout.size).toBe(layout.height)
      expect(layout.pitch).toBeGreaterThan(layout.size)
      if (layout.size > 7) expect(layout.height).toBeLessThanOrEqual(space.height)
    }
})

test('5,000 devices fit a desktop, and a phone scrolls through them rather than showing specks', () => {
  expect(layOutCells(5000, { width: 1180, height: 500 })).toMatchObject({ size: 9 })
  const phone = layOutCells(5000, { width: 342, height: 422 })
  expect(phone.size).toBe(7)
  expect(phone.height).toBeGreaterThan(422)
})

test('no devices, and no width yet, are no cells', () => {
  expect(layOutCells(0, { width: 300, height: 200 })).toMatchObject({ rows: 0, height: 0 })
  expect(layOutCells(3, { width: 0, height: 200 })).toMatchObject({ columns: 1, rows: 3 })
})

test('each cell is found where it is drawn, and nothing beside the last one', () => {
  const count = 137
  const layout = layOutCells(count, { width: 640, height: 200 })
  for (let index = 0; index < count; index += 1) {
    const { x, y } = cellPlace(layout, index)
    expect(cellAt(layout, count, { x: x + layout.size - 1, y: y + layout.size - 1 })).toBe(index)
  }
  const { x, y } = cellPlace(layout, count)
  expect(cellAt(layout, count, { x, y })).toBeNull()
  expect(cellAt(layout, count, { x: layout.columns * layout.pitch + 1, y: 0 })).toBeNull()
  expect(cellAt(layout, count, { x: -1, y: 0 })).toBeNull()
})

test('keys move by one device and by one row, and stay within', () => {
  const count = 25
  const layout = { size: 10, pitch: 11, columns: 10, rows: 3, height: 32 }
  const after = (index: number, key: string) => cellAfterKey(layout, count, { index, key })
  expect([after(0, 'ArrowRight'), after(0, 'ArrowLeft'), after(24, 'ArrowRight')]).toEqual([1, 0, 24])
  expect([after(3, 'ArrowDown'), after(13, 'ArrowUp'), after(3, 'ArrowUp')]).toEqual([13, 3, 3])
  // There is no device below the last row.
  expect([after(16, 'ArrowDown'), after(14, 'ArrowDown')]).toEqual([16, 24])
  expect([after(12, 'Home'), after(12, 'End'), after(12, 'PageDown')]).toEqual([0, 24, 24])
  expect(after(12, 'Tab')).toBeNull()
})
