import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { sessionTokenOf } from './session-cookie.ts'

const options = { name: 'better-auth.session_token', secret: 'of a test' }
const signed = (token: string, secret = options.secret) =>
  encodeURIComponent(`${token}.${createHmac('sha256', secret).update(token).digest('base64')}`)

test('the token of the cookie with this name, if this server has signed it', () => {
  const cookie = `a=1; ${options.name}=${signed('token')}; b=2`
  expect(sessionTokenOf(cookie, options)).toBe('token')
  expect(sessionTokenOf(`${options.name}=${signed('with.dots')}`, options)).toBe('with.dots')
})

test('of two cookies with the name the first counts, as for better-auth', () => {
  const [first, second] = [`${options.name}=${signed('first')}`, `${options.name}=${signed('second')}`]
  expect(sessionTokenOf(`${first}; ${second}`, options)).toBe('first')
})

test.each([
  undefined,
  '',
  `${options.name}=`,
  `${options.name}=token`,
  `${options.name}=.${signed('')}`,
  `${options.name}=${signed('token', 'another secret')}`,
  `${options.name}=${signed('token').replace('token', 'taken')}`,
  `${options.name}=token.${'ä'.repeat(44)}`,
  `${options.name}=%E0%A4%A`,
  `x${options.name}=${signed('token')}`,
])('%j names no session', (cookie) => {
  expect(sessionTokenOf(cookie, options)).toBeNull()
})
