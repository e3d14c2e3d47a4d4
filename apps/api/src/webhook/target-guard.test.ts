import { describe, expect, test } from 'vitest'
import { requireSendable } from './target-guard.ts'

const publicOnly = { allowedNetworks: [] }

describe('no message goes to', () => {
  test.each([
    'https://127.0.0.1/',
    'https://127.1/',
    'https://2130706433/',
    'https://0x7f.0.0.1/',
    'https://0.0.0.0/',
    'https://10.1.2.3/',
    'https://172.31.0.1/',
    'https://192.168.1.1/',
    'https://100.64.0.1/',
    'https://169.254.169.254/latest/meta-data',
    'https://224.0.0.1/',
    'https://255.255.255.255/',
    'https://[::1]/',
    'https://[::]/',
    'https://[fe80::1]/',
    'https://[fd00:ec2::254]/',
    'https://[ff02::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://[64:ff9b::a00:1]/',
    'https://[64:ff9b:1::1]/',
    'https://[2002:7f00:1::]/',
    'https://[2001:0:1::]/',
    'http://hooks.example/',
    'http://93.184.216.34/',
    'https://hooks.example:22/',
    'https://hooks.example:6379/',
    'https://name:password@hooks.example/',
  ])('%s', (url) => {
    expect(() => requireSendable(url, publicOnly)).toThrow(/^url: /)
  })
})

test.each(['https://hooks.example/in', 'https://93.184.216.34/', 'https://[2606:2800:220:1::1]:8443/'])(
  'messages go to %s',
  (url) => {
    expect(() => requireSendable(url, publicOnly)).not.toThrow()
  },
)

test('networks of the operator are open, by HTTP and any port, and no others with them', () => {
  const policy = { allowedNetworks: ['10.20.0.0/16', 'fd00::/8'] }
  expect(() => requireSendable('http://10.20.3.4:9000/in', policy)).not.toThrow()
  expect(() => requireSendable('http://[fd00::5]:9000/in', policy)).not.toThrow()
  expect(() => requireSendable('http://10.21.3.4:9000/in', policy)).toThrow(/^url: /)
  expect(() => requireSendable('http://10.20.3.4:x@evil.example/', policy)).toThrow(/^url: /)
})
