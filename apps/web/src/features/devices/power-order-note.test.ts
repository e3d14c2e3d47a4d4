import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { PowerOrderNote, PowerOrderTag } from './power-order-note.tsx'

const order = {
  id: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701',
  order: 'power_off' as const,
  state: 'waiting' as const,
  requestedAt: '2026-11-18T12:00:00.000Z',
  expiresAt: '2026-11-18T12:01:00.000Z',
  takenAt: null,
}
const expired = { ...order, state: 'expired' as const }
const taken = { ...order, state: 'taken' as const, takenAt: '2026-11-18T12:00:04.000Z' }
type Order = Parameters<typeof PowerOrderNote>[0]['order']

const noteOf = (shown: Order) => textOf(renderToStaticMarkup(createElement(PowerOrderNote, { order: shown })))
const tagOf = (shown: Order | null) => textOf(renderToStaticMarkup(createElement(PowerOrderTag, { order: shown })))
const textOf = (markup: string) => markup.replaceAll(/<[^>]*>/g, '')

test('an order that waits says until when', () => {
  expect(noteOf(order)).toMatch(/^power-off order is waiting for the device.* Expires .+\.$/)
  expect(tagOf(order)).toBe('power-off waiting')
})

test('an order that was taken says when, on the device’s page alone', () => {
  expect(noteOf(taken)).toMatch(/^power-off order was accepted by the device, .+\.$/)
  expect(tagOf(taken)).toBe('')
})

test('an order that has expired says what that may mean', () => {
  expect(noteOf(expired)).toMatch(
    /^power-off order expired .+\. The device did not report in time\. It may be powered off/,
  )
  expect(tagOf(expired)).toBe('power-off expired')
  expect(tagOf(null)).toBe('')
})
