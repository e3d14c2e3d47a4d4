import { expect, test } from 'vitest'
import { withPeer } from './name-callers.ts'

test('who sent a request is named last, whatever stands there', () => {
  expect(withPeer(undefined, '192.0.2.1')).toBe('192.0.2.1')
  expect(withPeer('203.0.113.1', '::ffff:192.0.2.1')).toBe('203.0.113.1, 192.0.2.1')
  expect(withPeer(['203.0.113.1', '203.0.113.2'], '2001:db8::1')).toBe('203.0.113.1, 203.0.113.2, 2001:db8::1')
  expect(withPeer('', undefined)).toBe(', unknown')
})
