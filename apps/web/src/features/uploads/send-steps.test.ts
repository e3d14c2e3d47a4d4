import { expect, test } from 'vitest'
import { type Answer, afterAnswer, firstState, type SendState } from './send-steps'

const mib = 1 << 20
const sizeBytes = 100 * mib
const answer = (status: number, offset: number | null = null): Answer => ({ status, offset, detail: `says ${status}` })
const piece = (bytes: number, ms: number) => ({ sizeBytes, sent: { bytes, ms } })
const look = { sizeBytes, sent: null }

test('pieces grow on a fast line, at most twofold each time and to 32 MiB', () => {
  let state = firstState
  const sizes: number[] = []
  for (let offset = 0; sizes.length < 7; ) {
    offset += state.pieceSize
    state = afterAnswer(state, answer(204, offset), { sizeBytes: 1e12, sent: { bytes: state.pieceSize, ms: 10 } }).state
    sizes.push(state.pieceSize / mib)
  }
  expect(sizes).toEqual([2, 4, 8, 16, 32, 32, 32])
})

test('pieces shrink on a slow line, and a short last piece says nothing', () => {
  const { state } = afterAnswer(firstState, answer(204, mib), piece(mib, 3000))
  expect(state.pieceSize).toBe(Math.round((mib * 2) / 3))
  const slow = afterAnswer(state, answer(204, 2 * mib), piece(state.pieceSize, 60_000)).state
  expect(slow.pieceSize).toBe(Math.round(state.pieceSize / 2))
  expect(afterAnswer(state, answer(204, 3 * mib), piece(10, 1)).state.pieceSize).toBe(state.pieceSize)
})

test('only the answer to a piece completes an upload', () => {
  expect(afterAnswer(firstState, answer(200, sizeBytes), look).next).toEqual({ kind: 'send' })
  expect(afterAnswer(firstState, answer(204, sizeBytes), piece(0, 1)).next).toEqual({ kind: 'complete' })
})

test('after a cut it looks at the offset, ever later, and stops after some minutes without progress', () => {
  let state: SendState = { ...firstState, offset: 5 * mib }
  const waits: number[] = []
  for (;;) {
    const { state: after, next } = afterAnswer(state, 'cut', piece(state.pieceSize, 1))
    state = after
    if (next.kind !== 'ask') {
      expect(next).toEqual({ kind: 'stop', reason: 'cut', detail: null })
      break
    }
    waits.push(next.afterMs)
  }
  expect(waits.slice(0, 7)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
  expect(waits).toHaveLength(23)
  expect(state).toMatchObject({ offset: 5 * mib, pieceSize: 128 * 1024 })
  // An answer alone is no progress; bytes that arrived are.
  const cut = { ...state, failures: 7 }
  expect(afterAnswer(cut, answer(200, 5 * mib), look).state.failures).toBe(7)
  expect(afterAnswer(cut, answer(200, 5 * mib + 1), look).state.failures).toBe(0)
})

test('it continues at the offset of the API, and waits where the API is away or busy', () => {
  expect(afterAnswer(firstState, answer(409, 7), piece(mib, 1))).toMatchObject({
    state: { offset: 7, failures: 1 },
    next: { kind: 'ask', afterMs: 1000 },
  })
  for (const status of [400, 408, 429, 500, 502, 503, 504])
    expect(afterAnswer(firstState, answer(status), piece(mib, 1)).next).toEqual({ kind: 'ask', afterMs: 1000 })
})

test('it stops with the reason where another try would not help', () => {
  const reasonOf = (status: number) => afterAnswer(firstState, answer(status), piece(mib, 1)).next
  expect(reasonOf(401)).toEqual({ kind: 'stop', reason: 'signed-out', detail: 'says 401' })
  expect(reasonOf(404)).toEqual({ kind: 'stop', reason: 'gone', detail: 'says 404' })
  for (const status of [403, 409, 413, 415])
    expect(reasonOf(status)).toEqual({ kind: 'stop', reason: 'refused', detail: `says ${status}` })
  expect(afterAnswer(firstState, answer(204), piece(mib, 1)).next).toMatchObject({ reason: 'refused' })
})
