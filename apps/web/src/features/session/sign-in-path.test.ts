import { expect, test } from 'vitest'
import { pathAfterSignIn, signInPath } from './sign-in-path.ts'

test('the way back keeps path and filters', () => {
  const path = signInPath('/boots?outcome=failed&simulated=yes')
  expect(pathAfterSignIn(new URL(path, 'http://localhost').searchParams.get('next'))).toBe(
    '/boots?outcome=failed&simulated=yes',
  )
  expect(signInPath('/')).toBe('/sign-in')
})

test.each([null, undefined, '', 'boots', 'https://evil.test/', '//evil.test', '/\\evil.test', '/\t/evil.test'])(
  'after sign-in %j leads to the overview, never away',
  (next) => {
    expect(pathAfterSignIn(next)).toBe('/')
  },
)
