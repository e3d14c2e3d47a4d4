import { expect, test } from 'vitest'
import { Turns } from './turns.ts'

const never = new AbortController().signal

test('a few run at once under one key, the others in their order, and other keys beside them', async () => {
  const turns = new Turns(2)
  const begun: string[] = []
  const ends: (() => void)[] = []
  const start = (key: string, name: string, signal = never) =>
    turns.within(key, signal, async () => {
      begun.push(name)
      await new Promise<void>((resolve) => void ends.push(resolve))
      return name
    })
  const gone = new AbortController()
  const all = [start('a', '1'), start('a', '2'), start('a', '3', gone.signal), start('a', '4'), start('b', '5')]
  expect(begun).toEqual(['1', '2', '5'])
  gone.abort()
  ends.shift()?.()
  await all[0]
  await expect.poll(() => begun).toEqual(['1', '2', '5', '4'])
  for (const end of ends) end()
  expect(await Promise.all(all)).toEqual(['1', '2', null, '4', '5'])
})

test('a turn that fails is passed on', async () => {
  const turns = new Turns(1)
  await expect(turns.within('a', never, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(await turns.within('a', never, async () => 7)).toBe(7)
})
