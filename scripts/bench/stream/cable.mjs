import { streamBenchProgram } from '../../lib/paths.mjs'
import { inNamespace, Namespaces, run } from '../namespaces.mjs'
import { WatchedProcess } from '../watched-process.mjs'
import { SlowPort } from './port.mjs'

const relayLimitMs = 10_000
/** Packets that an interface keeps for the relay: more than what all devices may have under way. */
const relayQueue = 10_000
/** Of Ethernet, for each packet: preamble, header, checksum and gap. */
const ethernetSize = 38

/**
 * How packets pass the cable. `S`: the kernel cuts super-packets before they leave, as for a network card that cannot. `U`: they
 * pass whole, as for a card that cuts them itself.
 * @typedef {'S' | 'U'} Mode
 */

/** Two network namespaces joined by a veth pair: the servers at one end, the devices at the other. */
export class Cable {
  serverIp = '10.79.0.1'
  clientIp = '10.79.0.2'
  #namespaces = new Namespaces('stream')

  constructor() {
    const { server, client } = this.#namespaces
    run('ip', '-n', server, 'link', 'add', 'server0', 'type', 'veth', 'peer', 'name', 'client0', 'netns', client)
    for (const [namespace, device, ip] of this.#ends()) {
      run('ip', '-n', namespace, 'addr', 'add', `${ip}/16`, 'broadcast', '+', 'dev', device)
      run('ip', '-n', namespace, 'link', 'set', device, 'up')
    }
  }

  /**
   * @param {Mode} mode
   * @param {number} mtu bytes of an IP packet
   */
  set(mode, mtu) {
    const value = mode === 'U' ? 'on' : 'off'
    const features = ['tso', 'gso', 'gro', 'tx-udp-segmentation'].flatMap((name) => [name, value])
    for (const [namespace, device] of this.#ends()) {
      run('ip', '-n', namespace, 'link', 'set', device, 'mtu', String(mtu))
      run('ip', 'netns', 'exec', namespace, 'ethtool', '-K', device, ...features)
    }
  }

  /**
   * Puts a link with a delay in the cable's place, for the same addresses, until the relay that is given back is stopped.
   * @param {{ delayUs: number, lossPercent: number, mbitPerSecond?: number }} link each direction's; the speed is that of the servers' end
   */
  async delay({ delayUs, lossPercent, mbitPerSecond }) {
    const { server, client } = this.#namespaces
    const relay = new WatchedProcess({
      command: streamBenchProgram,
      args: [
        'relay',
        '--server-namespace',
        server,
        '--client-namespace',
        client,
        '--delay-us',
        String(delayUs),
        '--loss',
        String(Math.round(lossPercent * 1000)),
      ],
    })
    try {
      await relay.waitFor(/relaying/, relayLimitMs)
      for (const [namespace, own, other] of [
        [server, this.serverIp, this.clientIp],
        [client, this.clientIp, this.serverIp],
      ]) {
        const link = ['link', 'set', 'delay0', 'up', 'mtu', '1500', 'txqueuelen', String(relayQueue)]
        run('ip', '-n', namespace, ...link)
        run('ip', '-n', namespace, 'route', 'add', `${other}/32`, 'dev', 'delay0', 'src', own)
      }
      if (mbitPerSecond !== undefined) {
        const shaped = ['rate', `${mbitPerSecond}mbit`, 'burst', '16kb', 'limit', '8mb']
        const shaping = ['root', 'tbf', ...shaped, 'overhead', String(ethernetSize)]
        run('ip', 'netns', 'exec', server, 'tc', 'qdisc', 'add', 'dev', 'delay0', ...shaping)
      }
    } catch (error) {
      await relay.stop()
      throw error
    }
    return relay
  }

  /**
   * Puts a switch with a slow port towards the devices in the cable's place, for the same addresses, until what is given back is removed.
   * @param {{ mbitPerSecond: number, queueKb: number }} port
   */
  behindPort(port) {
    const { server, client } = this.#namespaces
    const ends = [
      { namespace: server, own: this.serverIp, other: this.clientIp },
      { namespace: client, own: this.clientIp, other: this.serverIp },
    ]
    return new SlowPort({ name: server.replace(/s$/, 'p'), ends }, port)
  }

  onServer(program, args) {
    return inNamespace(this.#namespaces.server, program, args)
  }

  onClient(program, args) {
    return inNamespace(this.#namespaces.client, program, args)
  }

  endAll() {
    this.#namespaces.endAll()
  }

  remove() {
    this.#namespaces.remove()
  }

  #ends() {
    return [
      [this.#namespaces.server, 'server0', this.serverIp],
      [this.#namespaces.client, 'client0', this.clientIp],
    ]
  }
}
