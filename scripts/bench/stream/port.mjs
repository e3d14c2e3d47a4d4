import { run } from '../namespaces.mjs'

/** Of Ethernet, for each frame, beside what an interface of Linux counts: preamble, checksum and gap. */
const frameSize = 24
const burst = '16kb'

/**
 * A switch between the servers' end and the devices' end, for the same addresses: a namespace with a bridge, whose port towards the devices
 * has a speed of its own and drops what it cannot keep (tc-tbf(8)).
 */
export class SlowPort {
  #name

  /**
   * @param {{ name: string, ends: { namespace: string, own: string, other: string }[] }} between the first end is the servers'
   * @param {{ mbitPerSecond: number, queueKb: number }} port
   */
  constructor({ name, ends }, { mbitPerSecond, queueKb }) {
    this.#name = name
    run('ip', 'netns', 'add', name)
    try {
      run('ip', '-n', name, 'link', 'add', 'bridge0', 'type', 'bridge')
      run('ip', '-n', name, 'link', 'set', 'bridge0', 'up')
      for (const [index, end] of ends.entries()) this.#connect(`port${index}`, end)
      const speed = ['rate', `${mbitPerSecond}mbit`, 'burst', burst, 'limit', `${queueKb}kb`]
      const shaped = ['root', 'tbf', ...speed, 'overhead', String(frameSize)]
      run('ip', 'netns', 'exec', name, 'tc', 'qdisc', 'add', 'dev', 'port1', ...shaped)
    } catch (error) {
      this.remove()
      throw error
    }
  }

  remove() {
    // Interfaces and routes go with their other ends.
    run('ip', 'netns', 'del', this.#name)
  }

  /** Without segmentation, as on a network card that cannot: what comes to the port are packets. */
  #connect(port, { namespace, own, other }) {
    const peer = ['peer', 'name', 'slow0', 'netns', namespace]
    run('ip', '-n', this.#name, 'link', 'add', port, 'type', 'veth', ...peer)
    run('ip', '-n', this.#name, 'link', 'set', port, 'master', 'bridge0', 'up')
    run('ip', '-n', namespace, 'link', 'set', 'slow0', 'up')
    const off = ['tso', 'gso', 'gro', 'tx-udp-segmentation'].flatMap((feature) => [feature, 'off'])
    for (const [where, device] of [
      [this.#name, port],
      [namespace, 'slow0'],
    ])
      run('ip', 'netns', 'exec', where, 'ethtool', '-K', device, ...off)
    run('ip', '-n', namespace, 'route', 'add', `${other}/32`, 'dev', 'slow0', 'src', own)
  }
}
