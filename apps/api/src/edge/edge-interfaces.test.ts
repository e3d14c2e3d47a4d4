import { expect, test } from 'vitest'
import { withOtherMtus } from './edge-interfaces.ts'

const at = (ip: string, mtu: number, prefixLength = 24) => ({ name: 'eth0', ip, prefixLength, mtu })
const mtusOf = (own: ReturnType<typeof at>[], ...others: ReturnType<typeof at>[]) =>
  withOtherMtus(own, [{ id: 'b', name: 'edge-2', interfaces: others }]).map(({ otherMtus }) => otherMtus)

test('another MTU in the same network is named with its edge', () => {
  expect(mtusOf([at('10.0.0.1', 1500), at('10.0.1.1', 1500)], at('10.0.0.2', 9000))).toEqual([
    [{ edgeId: 'b', edgeName: 'edge-2', mtu: 9000 }],
    [],
  ])
})

test.each([
  ['the same MTU', at('10.0.0.2', 1500)],
  ['another network', at('10.0.1.2', 9000)],
  ['loopback', at('127.0.0.1', 65_535, 8)],
])('%s is no difference', (_name, other) => {
  expect(mtusOf([at('10.0.0.1', 1500), at('127.0.0.1', 1500, 8)], other)).toEqual([[], []])
})
