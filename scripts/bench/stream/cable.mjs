import { cable, Lab } from '../../lib/lab/namespaces.mjs'
import { streamBenchProgram } from '../../lib/paths.mjs'
import { WatchedProcess } from '../watched-process.mjs'

const relayLimitMs = 10_000
/** Packets that an interface queues for the relay: more than all devices may have in flight. */
const relayQueue = 10_000

/**
 * How packets pass the cable. `S`: the kernel segments super-packets before they leave, as for a network card that
 * cannot. `U`: they pass whole, as for a card that segments them itself.
 * @typedef {'S' | 'U'} Mode
 */

/** Two network namespaces joined by a veth pair: the servers at one end, the devices at the other. */
export class Cable {
  serverIp = '10.79.0.1'
  /** As the servers see it, behind a router: it may boot as any device where its network is trusted. */
  clientIp = '10.80.0.1'
  clientNetwork = '10.80.0.0/16'
  #lab = new Lab('stream')
  #server = this.#lab.namespace('s')
  #client = this.#lab.namespace('c')
  /** Ports so far: the kernel takes a while to remove the devices of a removed one. */
  #ports = 0
  #ends = [
    { namespace: this.#server, device: 'server0', own: this.serverIp, other: this.clientIp },
    { namespace: this.#client, device: 'client0', own: this.clientIp, other: this.serverIp },
  ]

  constructor() {
    const routerIp = '10.79.0.2'
    const [server, client] = this.#ends
    cable({ ...server, address: `${this.serverIp}/16` }, { ...client, address: `${routerIp}/16` })
    this.#server.ip('route', 'add', this.clientNetwork, 'via', routerIp)
    this.#client.address('lo', `${this.clientIp}/32`)
    this.#client.route('10.79.0.0/24', client.device, this.clientIp)
    // A router asks for its neighbours by its own address, not by that of the packet's source.
    this.#client.run('sh', '-c', `echo 2 > /proc/sys/net/ipv4/conf/${client.device}/arp_announce`)
  }

  /**
   * @param {Mode} mode
   * @param {number} mtu bytes of an IP packet
   */
  set(mode, mtu) {
    for (const { namespace, device } of this.#ends) {
      namespace.mtu(device, mtu)
      namespace.segmentationOffload(device, mode === 'U')
    }
  }

  /**
   * Replaces the cable by a link with a delay, for the same addresses, until the relay that it returns is stopped.
   * @param {{ delayUs: number, lossPercent: number }} link for each direction
   */
  delay(link) {
    return this.#relay(link, this.#ends)
  }

  /**
   * Replaces the cable by the port of a switch, as `behindPort` does, with a round trip. The kernel shapes what the
   * servers send; only what the devices send, which is little, goes through a relay, and waits there.
   * @param {{ roundTripUs: number, mbitPerSecond: number, queueKb: number, mtu?: number }} port
   */
  async behindFarPort({ roundTripUs, ...port }) {
    const lab = this.behindPort(port)
    try {
      const [, client] = this.#ends
      client.namespace.run('ip', 'route', 'del', `${client.other}/32`)
      const relay = await this.#relay({ delayUs: roundTripUs, lossPercent: 0 }, [client])
      return {
        stop: async () => {
          await relay.stop()
          lab.remove()
        },
      }
    } catch (error) {
      lab.remove()
      throw error
    }
  }

  async #relay({ delayUs, lossPercent }, from) {
    const ends = ['--server-namespace', this.#server.name, '--client-namespace', this.#client.name]
    const link = ['--delay-us', String(delayUs), '--loss', String(Math.round(lossPercent * 1000))]
    const relay = new WatchedProcess({ command: streamBenchProgram, args: ['relay', ...ends, ...link] })
    try {
      await relay.waitFor(/relaying/, relayLimitMs)
      for (const { namespace, own, other } of this.#ends) {
        namespace.ip('link', 'set', 'delay0', 'up', 'mtu', '1500', 'txqueuelen', String(relayQueue))
        if (from.some((end) => end.namespace === namespace)) namespace.route(`${other}/32`, 'delay0', own)
      }
    } catch (error) {
      await relay.stop()
      throw error
    }
    return relay
  }

  /**
   * Replaces the cable by a switch, for the same addresses, until what it returns is removed. The switch's port towards
   * the devices has a limited speed, and drops what its queue cannot hold. It sees packets as on a network card without
   * segmentation.
   * @param {{ mbitPerSecond: number, queueKb: number, mtu?: number }} port
   */
  behindPort({ mbitPerSecond, queueKb, mtu = 1500 }) {
    const lab = new Lab('port')
    const slow = `slow${this.#ports++}`
    try {
      const bridge = lab.namespace('p')
      bridge.bridge('bridge0')
      for (const [index, { namespace, own, other }] of this.#ends.entries()) {
        const ends = [
          { namespace: bridge, device: `port${index}` },
          { namespace, device: slow },
        ]
        cable(...ends)
        for (const end of ends) {
          end.namespace.mtu(end.device, mtu)
          end.namespace.segmentationOffload(end.device, false)
        }
        bridge.join('bridge0', `port${index}`)
        namespace.route(`${other}/32`, slow, own)
      }
      bridge.rate('port1', { mbitPerSecond, queue: `${queueKb}kb` })
    } catch (error) {
      lab.remove()
      throw error
    }
    return lab
  }

  onServer(program, args) {
    return this.#server.command(program, args)
  }

  onClient(program, args) {
    return this.#client.command(program, args)
  }

  endAll() {
    this.#lab.endAll()
  }

  remove() {
    this.#lab.remove()
  }
}
