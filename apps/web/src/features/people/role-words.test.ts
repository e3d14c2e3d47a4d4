import { expect, test } from 'vitest'
import { roleWords, scopeInput, scopeKey, scopeWords } from './role-words'

const id = '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701'

test('a role reads as people say it', () => {
  expect(roleWords('image_manager')).toBe('image manager')
})

test('a scope reads as the end of a sentence, and names at most one id to the API', () => {
  const whole = { kind: 'organization' as const, id: null, name: 'the whole organization' }
  const collection = { kind: 'collection' as const, id, name: 'Lab in Berlin' }
  expect([scopeWords(whole), scopeInput(whole)]).toEqual(['the whole organization', {}])
  expect([scopeWords(collection), scopeInput(collection)]).toEqual([
    'the collection Lab in Berlin',
    { collectionId: id },
  ])
  expect(scopeKey(whole)).not.toBe(scopeKey(collection))
})
