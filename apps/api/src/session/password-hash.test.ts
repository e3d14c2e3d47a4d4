import { expect, test } from 'vitest'
import { hashPassword, inTurn, verifyPassword } from './password-hash.ts'

test('a flood of passwords is refused in part, and what was taken is hashed', async () => {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  let atOnce = 0
  // They take the turns and most places of the queue as passwords do, without the time that a hash takes.
  const others = Array.from({ length: 100 }, () =>
    inTurn(async () => {
      atOnce += 1
      expect(atOnce).toBeLessThanOrEqual(2)
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
  expect(atOnce).toBe(2)
  open()
  await Promise.all(others)
  const [hash = '', other = ''] = await Promise.all(taken)
  expect(await verifyPassword({ hash, password: 'password 0' })).toBe(true)
  expect(await verifyPassword({ hash, password: 'password 1' })).toBe(false)
  expect(await verifyPassword({ hash: other, password: 'password 1' })).toBe(true)
})
