import { expect, test } from 'vitest'
import { moveRefusal, moveSentences } from './home-text'

const home = { edge: { id: 'e', name: 'edge-1', isRemoved: false }, keeps: null as string | null }
const move = { deviceName: 'pc-01', home, targetName: 'edge-2', isRunning: false }

test('a move is refused while the device runs, and while its home keeps something of it', () => {
  expect(moveRefusal(move)).toBeNull()
  expect(moveRefusal({ ...move, isRunning: true })).toContain('pc-01 is running')
  const keeps = '4096 bytes of its own image'
  expect(moveRefusal({ ...move, home: { ...home, keeps } })).toContain(`edge-1 stores ${keeps}. Delete, seal`)
  const removed = { edge: { ...home.edge, isRemoved: true }, keeps }
  expect(moveRefusal({ ...move, home: removed, isRunning: true })).toBeNull()
})

test('of an edge that is there nothing is lost; of one that was removed, what it keeps', () => {
  expect(moveSentences(move).join(' ')).toContain('If it does not, nothing is lost.')
  const edge = { ...home.edge, isRemoved: true }
  const lost = moveSentences({ ...move, home: { edge, keeps: '7 bytes of its write cache' } })
  expect(lost[0]).toContain('It stores 7 bytes of its write cache. Anything stored there is permanently lost.')
  expect(moveSentences({ ...move, home: { edge, keeps: null } })[0]).toContain('No stored writes of pc-01')
})
