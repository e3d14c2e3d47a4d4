import { expect, test } from 'vitest'
import { cardCounters, type Network, sizeSentence } from './network-words.ts'

const network: Network = {
  duplex: 'full',
  mtuBytes: 9000,
  linkMbit: 1000,
  carrierChanges: 2,
  receiveErrors: 0,
  crcErrors: 0,
  receiveDrops: 0,
  sendErrors: 0,
  socketDrops: 3,
  sizeMaxBytes: 8972,
  sizeBytes: 1472,
  lostSizeBytes: 4052,
  lostSizeCount: 4,
  isBlackHole: true,
  toDevice: null,
  fromDevice: null,
  order: null,
  rtt: null,
}

test('a path that takes less than the cards has a sentence, and no other', () => {
  expect(sizeSentence(network)).toBe(
    'Packets above 1,472 bytes vanish between edge and device: MTU 9000 here, less on the way.',
  )
  expect(sizeSentence({ ...network, mtuBytes: null })).toBe('Packets above 1,472 bytes vanish between edge and device.')
  expect(sizeSentence({ ...network, isBlackHole: false })).toBeNull()
})

test('only counters that count something are shown', () => {
  expect(cardCounters(network)).toEqual([
    { label: 'Link changes', count: 2 },
    { label: 'Dropped by the device', count: 3 },
  ])
})
