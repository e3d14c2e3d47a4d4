import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { applyStateDelta } from '../test/apply-state-delta.ts'
import { makeStateEdits, stateDigest } from './state-delta.ts'
import { desiredState, type StateDeltaEnvelope, stateDeltaEnvelope } from './uplink.ts'
import { stateSignedText, verifyText } from './uplink-signature.ts'

interface Vectors {
  edgeId: string
  organizationKey: { publicKey: string }
  basePair: { incarnation: number; counter: number }
  base: string
  /** `payload` is there where the delta leads to a state. */
  cases: { name: string; verdict: 'accepted' | 'delta_unfit'; payload?: string; answer: StateDeltaEnvelope }[]
}

const vectors: Vectors = JSON.parse(readFileSync(new URL('../vectors/state-delta-v1.json', import.meta.url), 'utf8'))
const { base } = vectors

function isAccepted({ signature, delta }: StateDeltaEnvelope): boolean {
  const payload = applyStateDelta(base, delta)
  if (payload === null || !verifyText(stateSignedText(payload), signature, vectors.organizationKey.publicKey))
    return false
  const state = desiredState.safeParse(JSON.parse(payload))
  return state.success && state.data.edgeId === vectors.edgeId && state.data.counter > vectors.basePair.counter
}

describe('the golden deltas', () => {
  test.each(vectors.cases)('$name: $verdict', ({ verdict, payload, answer }) => {
    expect(stateDeltaEnvelope.safeParse(answer).error).toBeUndefined()
    expect(isAccepted(answer) ? 'accepted' : 'delta_unfit').toBe(verdict)
    if (payload === undefined) return
    expect(applyStateDelta(base, answer.delta)).toBe(payload)
    expect(makeStateEdits(base, payload)).toEqual(answer.delta.edits)
  })
})

const longName = (index: number) => `name ${index} `.repeat(4)
const listOf = (count: number) => Array.from({ length: count }, (_, index) => ({ id: index, name: longName(index) }))
const textOf = (list: unknown) => JSON.stringify({ counter: 1, list })

function changeOf(former: string, next: string) {
  const edits = makeStateEdits(former, next)
  expect(edits === null || applyStateDelta(former, { base: stateDigest(former), edits }) === next).toBe(true)
  return edits
}

describe('the edits between two payloads', () => {
  test('of one object in a long list are as long as that object, wherever it stands', () => {
    const former = listOf(9_000)
    for (const index of [0, 1, 4_500, 8_998, 8_999]) {
      const next = former.map((one) => (one.id === index ? { id: one.id, name: 'é' } : one))
      for (const [from, to] of [
        [former, next],
        [next, former],
      ])
        expect(JSON.stringify(changeOf(textOf(from), textOf(to))).length).toBeLessThan(200)
    }
  })

  test('of a list that lost, gained and moved some are small', () => {
    const former = listOf(1_000)
    const next = [
      ...former.slice(500, 502),
      ...former.slice(0, 500),
      { id: -1, name: 'new' },
      ...former.slice(502, 990),
    ]
    expect(JSON.stringify(changeOf(textOf(former), textOf(next))).length).toBeLessThan(60_000)
  })

  test('do not exist for a short text, nor where most has changed', () => {
    expect(makeStateEdits(textOf(listOf(5)), textOf(listOf(6)))).toBeNull()
    expect(
      makeStateEdits(textOf(listOf(500)), textOf(listOf(500).map(({ id }) => ({ id, name: `${id} other` })))),
    ).toBeNull()
    expect(makeStateEdits('', textOf(listOf(500)))).toBeNull()
  })

  test('make each text of any other, also where objects are the same and characters have several bytes', () => {
    let seed = 7
    const below = (limit: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return seed % limit
    }
    const words = ['é', 'è', '},{', 'a', '𝕏', '"', '']
    const make = () =>
      textOf(
        Array.from({ length: 600 }, () => ({ name: Array.from({ length: below(4) }, () => words[below(7)]).join('') })),
      )
    let made = 0
    for (let round = 0; round < 100; round++) {
      const former = make()
      const list = JSON.parse(former).list as { name: string }[]
      const next = textOf(
        list.flatMap((one) => [[one], [one, one], [], [{ name: words[below(7)] }]][below(40)] ?? [one]),
      )
      if (changeOf(former, next) !== null) made += 1
      changeOf(former, make())
    }
    expect(made).toBeGreaterThan(30)
  })
})
