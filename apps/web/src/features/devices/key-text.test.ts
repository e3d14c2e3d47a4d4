import { expect, test } from 'vitest'
import { accessText, fingerprintText, keyFilters, keyLabels, keySentence } from './key-text'

const policy = { learn: 'approve', without: 'shared' } as const

test('a fingerprint is read in groups of eight digits, without losing one', () => {
  const fingerprint = '0123456789abcdef'.repeat(4)
  expect(fingerprintText(fingerprint)).toBe('01234567 89abcdef '.repeat(4).trim())
})

test('each label has a name, a filter and a sentence of its own', () => {
  const labels = Object.keys(keyLabels) as (keyof typeof keyLabels)[]
  for (const label of labels) expect(keyFilters).toContain(label)
  const sentences = [null, ...labels].map((label) => keySentence(label, { keyless: false, policy }))
  expect(new Set(sentences).size).toBe(labels.length + 1)
})

test('a device that waits, or has no key, is told what its collection gives it', () => {
  for (const without of ['everything', 'shared', 'nothing'] as const)
    for (const label of ['key_waits', 'no_key'] as const)
      expect(keySentence(label, { keyless: false, policy: { ...policy, without } })).toContain(accessText({ without }))
})

test('a device of which a person has decided that it has no key is known as one', () => {
  expect(keySentence('no_key', { keyless: true, policy })).toBe(
    'Somebody has decided that this device has no key. It is known by its MAC address only.',
  )
  expect(keySentence('key_changed', { keyless: true, policy })).toContain('This device is known as one without a key')
})
