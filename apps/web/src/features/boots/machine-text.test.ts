import { expect, test } from 'vitest'
import { cardText, hardwareText, storageText } from './machine-text.ts'

test('a card is named by what is known of it', () => {
  const machine = { processors: 1, memoryMib: 1, driver: null, card: null, linkMbit: null, model: null }
  expect(cardText(machine)).toBeNull()
  expect(cardText({ ...machine, driver: 'e1000e', card: '8086:15b8', linkMbit: 1000 })).toBe(
    'e1000e (8086:15b8), 1 Gbit/s',
  )
  expect(cardText({ ...machine, card: '8086:15b8', linkMbit: 2500 })).toBe('8086:15b8, 2.5 Gbit/s')
  expect(cardText({ ...machine, driver: 'virtio_net' })).toBe('virtio_net')
  expect(cardText({ ...machine, linkMbit: 100 })).toBe('100 Mbit/s')
})

test('hardware is what the device told of it', () => {
  const nothing = { model: null, processors: null, memoryGib: null, networkCard: null }
  expect(hardwareText(nothing)).toBeNull()
  expect(hardwareText({ ...nothing, processors: 1, memoryGib: 2 })).toBe('1 processor, 2\u00a0GiB')
  expect(hardwareText({ model: 'Maker Desk 7', processors: 8, memoryGib: 16, networkCard: 'e1000e 8086:15b8' })).toBe(
    'Maker Desk 7, 8 processors, 16\u00a0GiB, e1000e 8086:15b8',
  )
})

test('a kind of storage that is not known here keeps its word', () => {
  expect(storageText('hdd')).toBe('Hard disk')
  expect(storageText('tape')).toBe('tape')
})
