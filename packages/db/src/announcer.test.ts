import { expect, test } from 'vitest'
import { Announcer } from './announcer.ts'

/** An announcer whose pauses last until the test ends them, and which sends nothing while it is cut off. */
function open() {
  const sent: string[][] = []
  const line = { isCut: false }
  let pause = Promise.withResolvers<void>()
  const announcer = new Announcer({
    async send(payloads) {
      if (line.isCut) throw new Error('the connection is lost')
      sent.push(payloads)
    },
    pause(signal) {
      signal.addEventListener('abort', () => pause.resolve())
      return signal.aborted ? Promise.resolve() : pause.promise
    },
  })
  const endPause = async () => {
    // What comes before it, and after it, takes microtasks alone.
    await new Promise(setImmediate)
    const ended = pause
    pause = Promise.withResolvers()
    ended.resolve()
    await new Promise(setImmediate)
  }
  return { announcer, sent, line, endPause }
}

test('the first notification is sent at once, and equal ones until the next pause ends are sent once', async () => {
  const { announcer, sent, endPause } = open()
  announcer.announce(['a'])
  for (let count = 0; count < 100; count++) announcer.announce(['a', 'b'])
  await new Promise(setImmediate)
  expect(sent).toEqual([['a']])
  await endPause()
  expect(sent).toEqual([['a'], ['a', 'b']])
  await endPause()
  announcer.announce(['c'])
  expect(sent).toEqual([['a'], ['a', 'b'], ['c']])
})

test('what could not be sent is sent after the pause, with what came meanwhile', async () => {
  const { announcer, sent, line, endPause } = open()
  line.isCut = true
  announcer.announce(['a'])
  await endPause()
  announcer.announce(['b', 'a'])
  line.isCut = false
  await endPause()
  expect(sent).toEqual([['a', 'b']])
})

test('one statement sends 1,000 notifications, and the next one the others', async () => {
  const { announcer, sent, endPause } = open()
  announcer.announce(Array.from({ length: 1_500 }, (_, index) => String(index)))
  await endPause()
  expect(sent.map(({ length }) => length)).toEqual([1_000, 500])
})

test('its end waits for no pause, and for nothing that cannot be sent', async () => {
  const { announcer, sent } = open()
  announcer.announce(['a'])
  announcer.announce(['b'])
  await announcer.close()
  expect(sent).toEqual([['a'], ['b']])
  const other = open()
  other.line.isCut = true
  other.announcer.announce(['a'])
  await other.announcer.close()
  expect(other.sent).toEqual([])
})
