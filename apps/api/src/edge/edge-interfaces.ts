import type { Heartbeat } from '@bootfarm/proto/uplink'
import { isInNetwork } from '../rules/ipv4-network.ts'

type Interface = NonNullable<Heartbeat['interfaces']>[number]

interface OtherEdge {
  id: string
  name: string
  interfaces: Interface[]
}

/** Every edge has a separate one: it is no network that edges share. */
const loopback = '127.0.0.0/8'

/**
 * The interfaces, each with those of other edges in its network whose MTU is not the same: packets that fit one do not
 * fit the other.
 */
export function withOtherMtus(own: Interface[], others: OtherEdge[]) {
  return own.map((one) => ({
    ...one,
    otherMtus: others.flatMap(({ id, name, interfaces }) =>
      interfaces
        .filter((other) => sharesNetwork(one, other) && other.mtu !== one.mtu)
        .map(({ mtu }) => ({ edgeId: id, edgeName: name, mtu })),
    ),
  }))
}

function sharesNetwork(one: Interface, other: Interface): boolean {
  return !isInNetwork(one.ip, loopback) && isInNetwork(other.ip, `${one.ip}/${one.prefixLength}`)
}
