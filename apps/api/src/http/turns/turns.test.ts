import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type TurnKind, Turns } from './turns.ts'

/** The loop is active for as long as `work` says, and idle otherwise. */
let now = 0
let active = 0
let turns: Turns
let started: [TurnKind, number][]

beforeEach(() => {
  vi.useFakeTimers()
  now = 0
  active = 0
  started = []
  turns = new Turns({
    nowMs: () => now,
    activeMs: () => active,
    onStarted: (kind, waitedMs) => started.push([kind, waitedMs]),
  })
})
afterEach(() => vi.useRealTimers())

function idle(ms: number): Promise<unknown> {
  now += ms
  return vi.advanceTimersByTimeAsync(ms)
}

function work(ms: number): Promise<unknown> {
  active += ms
  return idle(ms)
}

/** A turn that may have to wait. */
function ask(account: string, kind: TurnKind = 'request') {
  const asked = { hasTurn: false, end: () => {} }
  void turns.take(account, kind).then((end) => Object.assign(asked, { hasTurn: true, end }))
  return asked
}

async function settled<T>(asked: T): Promise<T> {
  await vi.advanceTimersByTimeAsync(0)
  return asked
}

/** Uses the loop for so long. */
async function use(account: string, ms: number): Promise<void> {
  const { end } = await settled(ask(account))
  await work(ms)
  end()
}

const countOf = (asked: { hasTurn: boolean }[]) => asked.filter(({ hasTurn }) => hasTurn).length

test('an account that is alone has more turns at once, and one beside others has fewer', async () => {
  const alone = await settled(Array.from({ length: 12 }, () => ask('a')))
  expect(countOf(alone)).toBe(8)
  for (const { end } of alone.slice(0, 8)) end()
  expect(countOf(await settled(alone))).toBe(12)
  for (const { end } of alone) end()
  ;(await settled(ask('b'))).end()
  expect(countOf(await settled(Array.from({ length: 12 }, () => ask('a'))))).toBe(4)
})

test('whoever has used more waits while another account has just started a turn', async () => {
  await use('heavy', 900)
  const light = await settled(ask('light'))
  const heavy = await settled(ask('heavy'))
  expect([light.hasTurn, heavy.hasTurn]).toEqual([true, false])
  light.end()
  expect((await settled(heavy)).hasTurn).toBe(true)
  // Whoever has used less never waits for it.
  expect((await settled(ask('light'))).hasTurn).toBe(true)
})

test('whoever has used little waits for nobody', async () => {
  await use('a', 60)
  const other = await settled(ask('b'))
  expect([other.hasTurn, (await settled(ask('a'))).hasTurn]).toEqual([true, true])
})

test('a turn that takes long holds others back for 100 ms', async () => {
  await use('heavy', 900)
  await idle(50)
  await settled(ask('slow'))
  const heavy = await settled(ask('heavy'))
  await idle(40)
  expect(heavy.hasTurn).toBe(false)
  await idle(70)
  expect(heavy.hasTurn).toBe(true)
})

test('whoever waits gets a turn every 100 ms, however many others are quicker', async () => {
  await use('heavy', 900)
  const waiting = Array.from({ length: 20 }, () => ask('heavy'))
  for (let step = 0; step < 100; step++) {
    const light = await settled(ask(`light ${step}`))
    await idle(9)
    const next = await settled(ask(`light ${step} again`))
    light.end()
    await idle(1)
    next.end()
    for (const { end } of waiting) end()
  }
  expect(countOf(waiting)).toBeGreaterThanOrEqual(9)
})

test('of those who wait, the one who has used least is next', async () => {
  await use('heaviest', 900)
  await use('heavy', 500)
  const light = await settled(ask('light'))
  const [second, first] = [ask('heaviest'), ask('heavy')]
  await settled(null)
  light.end()
  await settled(null)
  expect([first.hasTurn, second.hasTurn]).toEqual([true, false])
  first.end()
  expect((await settled(second)).hasTurn).toBe(true)
})

test('the loop’s time is charged to the accounts whose turns were in progress, and forgotten', async () => {
  const [one, two] = await settled([ask('one'), ask('one')])
  const other = await settled(ask('other'))
  await work(600)
  for (const { end } of [one, two, other]) end?.()
  // 400 and 200 ms.
  const light = await settled(ask('other'))
  expect((await settled(ask('one'))).hasTurn).toBe(false)
  light.end()
  await idle(10_000)
  await settled(ask('other'))
  expect((await settled(ask('one'))).hasTurn).toBe(true)
})

test('while others work, a call starts after the one before, or 20 ms after its start', async () => {
  const alone = await settled(Array.from({ length: 5 }, () => ask('a', 'call')))
  expect(countOf(alone)).toBe(4)
  for (const { end } of alone) end()
  for (const { end } of await settled(alone)) end()
  ;(await settled(ask('b'))).end()
  const calls = await settled([ask('a', 'call'), ask('a', 'call'), ask('a', 'call')])
  expect(countOf(calls)).toBe(1)
  calls[0]?.end()
  expect(countOf(await settled(calls))).toBe(2)
  await idle(10)
  expect(countOf(calls)).toBe(2)
  await idle(20)
  expect(countOf(calls)).toBe(3)
})

test('while others work, a large body arrives 100 ms after the one before, and one at a time is answered', async () => {
  ;(await settled(ask('b'))).end()
  const uploads = await settled([ask('a', 'upload'), ask('a', 'upload')])
  expect(countOf(uploads)).toBe(1)
  uploads[0]?.end()
  await idle(50)
  expect(countOf(uploads)).toBe(1)
  await idle(60)
  expect(countOf(uploads)).toBe(2)
  const answered = await settled(Array.from({ length: 3 }, () => ask('a', 'large')))
  expect(countOf(answered)).toBe(1)
  answered[0]?.end()
  expect(countOf(await settled(answered))).toBe(2)
})

test('an organization that is alone has its large bodies answered as they come', async () => {
  const uploads = await settled([ask('a', 'upload'), ask('a', 'upload')])
  expect(countOf(uploads)).toBe(2)
  expect(countOf(await settled(Array.from({ length: 6 }, () => ask('a', 'large'))))).toBe(4)
})

test('an account that asks for the first time is not forgotten with others that are idle', async () => {
  ;(await settled(ask('b'))).end()
  expect(countOf(await settled(Array.from({ length: 12 }, () => ask('a'))))).toBe(4)
})

test('turns of each kind are counted apart, so that a request’s calls never wait for requests', async () => {
  const requests = await settled(Array.from({ length: 8 }, () => ask('a')))
  expect(countOf(requests)).toBe(8)
  expect((await settled(ask('a', 'call'))).hasTurn).toBe(true)
  expect(countOf(await settled(Array.from({ length: 6 }, () => ask('a', 'upload'))))).toBe(4)
})

test('too many that wait are refused, those of other accounts are not', async () => {
  await settled(Array.from({ length: 8 + 64 }, () => ask('a')))
  await expect(turns.take('a', 'request')).rejects.toMatchObject({ code: 'rate_limited' })
  expect((await settled(ask('b'))).hasTurn).toBe(true)
})

test('each turn tells how long it waited, and one that is refused or still waits tells nothing', async () => {
  const asked = await settled(Array.from({ length: 8 + 64 }, () => ask('a')))
  await expect(turns.take('a', 'request')).rejects.toMatchObject({ code: 'rate_limited' })
  expect(started).toEqual(Array.from({ length: 8 }, () => ['request', 0]))
  await idle(70)
  asked[0]?.end()
  await settled(asked)
  expect(started.slice(8)).toEqual([['request', 70]])
})

test('a turn ends once', async () => {
  const asked = await settled(Array.from({ length: 10 }, () => ask('a')))
  asked[0]?.end()
  asked[0]?.end()
  expect(countOf(await settled(asked))).toBe(9)
})
