import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { isNewestSeal, openSecret, type SecretPlace, sealSecret, secretKeysFrom } from './secret-keys.ts'

const apiSecret = 'the secret of an API, long enough'
const newKey = () => randomBytes(32).toString('base64')
const place: SecretPlace = { kind: 'signing_key', organizationId: 'organization', id: 'key' }
const secret = randomBytes(32)

test('what is sealed shows nothing of the secret, differs each time, and opens again', () => {
  const keys = secretKeysFrom(newKey(), apiSecret)
  const [one, other] = [sealSecret(keys, place, secret), sealSecret(keys, place, secret)]
  expect(Buffer.from(one).includes(secret)).toBe(false)
  expect(Buffer.from(one).equals(Buffer.from(other))).toBe(false)
  expect(Buffer.from(openSecret(keys, place, one))).toEqual(secret)
})

test('the newest key seals, and each key that is still given opens', () => {
  const [older, newer] = [newKey(), newKey()]
  const kept = sealSecret(secretKeysFrom(older, apiSecret), place, secret)
  const both = secretKeysFrom(`${newer},\n${older}`, apiSecret)
  expect(Buffer.from(openSecret(both, place, kept))).toEqual(secret)
  expect(isNewestSeal(both, kept)).toBe(false)
  expect(isNewestSeal(both, sealSecret(both, place, secret))).toBe(true)
  expect(() => openSecret(secretKeysFrom(newer, apiSecret), place, kept)).toThrow(
    /sealed with key [0-9a-f]{16}, which this API does not have\. Add it to SECRETS_KEY/,
  )
})

test('without a key, one of the API’s own secret seals, and opens after others were set', () => {
  const derived = secretKeysFrom('', apiSecret)
  const kept = sealSecret(derived, place, secret)
  expect(Buffer.from(openSecret(secretKeysFrom(newKey(), apiSecret), place, kept))).toEqual(secret)
  expect(() => openSecret(secretKeysFrom('', `${apiSecret}!`), place, kept)).toThrow(/restore the former BETTER_AUTH/)
})

test('a secret opens in its own row alone, and only unchanged', () => {
  const keys = secretKeysFrom(newKey(), apiSecret)
  const kept = sealSecret(keys, place, secret)
  const elsewhere: SecretPlace[] = [
    { ...place, id: 'other' },
    { ...place, organizationId: 'other' },
    { ...place, kind: 'webhook' },
  ]
  for (const other of elsewhere)
    expect(() => openSecret(keys, other, kept)).toThrow(/was changed in the database, or belongs to another row/)
  for (let index = 12; index < kept.length; index += 1) {
    const changed = Uint8Array.from(kept, (byte, at) => (at === index ? byte ^ 1 : byte))
    expect(() => openSecret(keys, place, changed), `byte ${index}`).toThrow(/was changed in the database/)
  }
})

test('a secret of an earlier release lies in clear and is not sealed by the newest key; an empty one stays empty', () => {
  const keys = secretKeysFrom('', apiSecret)
  expect(Buffer.from(openSecret(keys, place, secret))).toEqual(secret)
  expect(isNewestSeal(keys, secret)).toBe(false)
  expect(sealSecret(keys, place, new Uint8Array())).toEqual(new Uint8Array())
  expect(isNewestSeal(keys, new Uint8Array())).toBe(true)
})

test('a key that is none is refused with what to do', () => {
  for (const wrong of ['short', `${newKey()} ${'A'.repeat(44)}`, randomBytes(31).toString('base64')])
    expect(() => secretKeysFrom(wrong, apiSecret)).toThrow(/key [12] is not 32 bytes in base64; make one with: openssl/)
  expect(() => secretKeysFrom(Array.from({ length: 9 }, newKey).join(' '), apiSecret)).toThrow(/at most 8 keys/)
})
