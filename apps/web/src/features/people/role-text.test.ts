import { expect, test } from 'vitest'
import { roleText, scopeInput, scopeKey, scopeText } from './role-text'

const id = '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701'

test('a role reads as people say it', () => {
  expect(roleText('image_manager')).toBe('image manager')
})

test('a scope reads as the end of a sentence, and names at most one id to the API', () => {
  const whole = { kind: 'organization' as const, id: null, name: 'the whole organization' }
  const collection = { kind: 'collection' as const, id, name: 'Lab in Berlin' }
  expect([scopeText(whole), scopeInput(whole)]).toEqual(['the whole organization', {}])
  expect([scopeText(collection), scopeInput(collection)]).toEqual([
    'the collection Lab in Berlin',
    { collectionId: id },
  ])
  expect(scopeKey(whole)).not.toBe(scopeKey(collection))
})
