import { expect, test } from 'vitest'
import { ipv4Network, isInNetwork } from './ipv4-network.ts'

test.each([
  ['10.20.30.40', '10.20.0.0/16', true],
  ['10.21.0.1', '10.20.0.0/16', false],
  ['255.255.255.255', '128.0.0.0/1', true],
  ['192.0.2.1', '0.0.0.0/0', true],
  ['192.0.2.1', '192.0.2.1/32', true],
  ['192.0.2.2', '192.0.2.1/32', false],
  ['no address', '0.0.0.0/0', false],
  ['192.0.2.1', 'no network', false],
])('%s in %s: %s', (ip, network, inside) => {
  expect(isInNetwork(ip, network)).toBe(inside)
})

test.each(['10.0.0.0/8', ' 192.0.2.128/25 ', '0.0.0.0/0', '192.0.2.7/32'])('%s is a network', (text) => {
  expect(ipv4Network.parse(text)).toBe(text.trim())
})

test.each([
  ['10.1.2.3/8', 'Use 10.0.0.0/8'],
  ['192.0.2.130/25', 'Use 192.0.2.128/25'],
  ['10.0.0.0', 'Enter an address and a prefix length'],
  ['10.0.0.0/33', 'Enter an address and a prefix length'],
  ['10.0.0.0/08', 'Enter an address and a prefix length'],
  ['10.0.0/8', 'Enter an address and a prefix length'],
  ['fd00::/8', 'Enter an address and a prefix length'],
  ['', 'Enter an address and a prefix length'],
])('%s is refused: %s', (text, message) => {
  expect(ipv4Network.safeParse(text).error?.issues[0]?.message).toContain(message)
})
