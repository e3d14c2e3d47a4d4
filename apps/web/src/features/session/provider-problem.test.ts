import { expect, test } from 'vitest'
import { providerProblem } from './provider-problem'

test('what the provider’s way back ended with is a sentence, and never the address’s own text', () => {
  expect(providerProblem(undefined)).toBeNull()
  expect(providerProblem('not_invited')).toContain('Your address has not been invited')
  expect(providerProblem('<b>call 555</b>')).not.toContain('555')
})
