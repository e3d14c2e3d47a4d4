import { expect, test } from 'vitest'
import { addressWarning, installLine } from './install-line'

test('the token stands before the script, never on a command line', () => {
  const line = installLine('https://boot.example.test', 'bfj_abc')
  expect(line).toBe(
    "{ echo token=bfj_abc; curl --proto '=https' -fsSL https://boot.example.test/install/edge.sh; } | sudo sh",
  )
})

test('without TLS the line names the risk, except on this machine', () => {
  expect(installLine('http://10.0.0.5:3000', 't')).toBe(
    '{ echo token=t; curl -fsSL http://10.0.0.5:3000/install/edge.sh; } | sudo sh -s -- --insecure-uplink',
  )
  expect(installLine('http://localhost:3000', 't')).toBe(
    '{ echo token=t; curl -fsSL http://localhost:3000/install/edge.sh; } | sudo sh',
  )
})

test.each([
  ['http://localhost:3000', /works only on this machine/],
  ['http://127.0.0.1:3000', /works only on this machine/],
  ['http://10.0.0.5:3000', /not encrypted/],
])('%s is warned of', (url, warning) => {
  expect(addressWarning(url)).toMatch(warning)
})

test('HTTPS is not warned of', () => {
  expect(addressWarning('https://boot.example.test')).toBeNull()
})
