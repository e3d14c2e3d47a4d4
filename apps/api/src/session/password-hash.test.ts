import { availableParallelism } from 'node:os'
import { expect, test } from 'vitest'
import { hashesAtOnce, hashPassword, inTurn, verifyPassword } from './password-hash.ts'

test('hashing leaves half of the processors and half of the threads to everything else', () => {
  expect([1, 2, 3, 4, 64].map(hashesAtOnce)).toEqual([1, 1, 1, 2, 2])
})

test('a flood of passwords is refused in part, and what was taken is hashed', async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  let atOnce = 0
  const atOnceMax = hashesAtOnce(availableParallelism())
  // They take the turns and most places of the queue as passwords do, without the time that a hash takes.
  const others = Array.from({ length: 98 + atOnceMax }, () =>
    inTurn(async () => {
      atOnce += 1
      expect(atOnce).toBeLessThanOrEqual(atOnceMax)
      await opened
      atOnce -= 1
    }),
  )
  const taken = [hashPassword('password 0'), hashPassword('password 1')]
  const refused = { code: 'unavailable' }
  for (let count = 0; count < 4; count++) {
    await expect(hashPassword('password 2')).rejects.toMatchObject(refused)
    await expect(verifyPassword({ hash: '', password: 'password 2' })).rejects.toMatchObject(refused)
  }
  expect(atOnce).toBe(atOnceMax)
  open()
  await Promise.all(others)
  const [hash = '', other = ''] = await Promise.all(taken)
  expect(await verifyPassword({ hash, password: 'password 0' })).toBe(true)
  expect(await verifyPassword({ hash, password: 'password 1' })).toBe(false)
  expect(await verifyPassword({ hash: other, password: 'password 1' })).toBe(true)
})
