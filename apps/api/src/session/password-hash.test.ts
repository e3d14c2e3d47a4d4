import { expect, test } from 'vitest'
import { hashPassword, verifyPassword } from './password-hash.ts'

test('a flood of passwords is refused in part, and what was taken is hashed', async () => {
  const outcomes = await Promise.allSettled(
    Array.from({ length: 110 }, (_, index) => hashPassword(`password ${index}`)),
  )
  const hashes = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
  expect(hashes).toHaveLength(102)
  for (const outcome of outcomes.slice(102)) expect(outcome).toMatchObject({ reason: { code: 'unavailable' } })
  const [hash = ''] = hashes
  expect(await verifyPassword({ hash, password: 'password 0' })).toBe(true)
  expect(await verifyPassword({ hash, password: 'password 1' })).toBe(false)
})
