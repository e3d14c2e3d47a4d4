import { execFileSync } from 'node:child_process'

/**
 * One network segment: a namespace for the edge and one for the devices, joined by a veth pair. Real ports, real broadcasts, and
 * nothing of it reaches the machine's own network.
 */
export class Segment {
  readonly edgeIp = '10.77.0.1'
  readonly deviceInterface = 'dev0'
  readonly #edge: string
  readonly #devices: string

  constructor(name: string) {
    this.#edge = `bf-${name}-e`
    this.#devices = `bf-${name}-d`
    run('ip', 'netns', 'add', this.#edge)
    run('ip', 'netns', 'add', this.#devices)
    run('ip', '-n', this.#edge, 'link', 'add', 'edge0', 'type', 'veth', 'peer', 'name', 'dev0', 'netns', this.#devices)
    for (const [namespace, device] of [
      [this.#edge, 'edge0'],
      [this.#devices, 'dev0'],
    ] as const) {
      run('ip', '-n', namespace, 'link', 'set', 'lo', 'up')
      run('ip', '-n', namespace, 'link', 'set', device, 'up')
    }
    run('ip', '-n', this.#edge, 'addr', 'add', `${this.edgeIp}/24`, 'dev', 'edge0')
  }

  /** Gives the devices' side addresses from 10.77.0.`first` on. */
  addDeviceAddresses(first: number, count: number): void {
    for (let host = first; host < first + count; host++) {
      run('ip', '-n', this.#devices, 'addr', 'add', `10.77.0.${host}/24`, 'dev', this.deviceInterface)
    }
  }

  /** Loses this share of the packets in both directions, in percent. */
  loseEach(percent: number): void {
    for (const [namespace, device] of [
      [this.#edge, 'edge0'],
      [this.#devices, 'dev0'],
    ] as const) {
      const table = `netdev bootfarm_loss`
      this.#nft(namespace, `add table ${table}`)
      this.#nft(
        namespace,
        `add chain ${table} lose { type filter hook ingress device "${device}" priority 0; policy accept; }`,
      )
      this.#nft(namespace, `add rule ${table} lose meta l4proto udp numgen random mod 100 < ${percent} drop`)
    }
  }

  onEdge(command: string, ...args: string[]): [string, string[]] {
    return ['ip', ['netns', 'exec', this.#edge, command, ...args]]
  }

  onDevices(command: string, ...args: string[]): [string, string[]] {
    return ['ip', ['netns', 'exec', this.#devices, command, ...args]]
  }

  remove(): void {
    run('ip', 'netns', 'del', this.#edge)
    run('ip', 'netns', 'del', this.#devices)
  }

  #nft(namespace: string, rule: string): void {
    run('ip', 'netns', 'exec', namespace, 'nft', rule)
  }
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

/** Why tests with namespaces cannot run here; undefined where they can. `others`: Debian packages that they need too. */
export function namespacesMissing(others: string[] = []): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  const missing = (process.env.BOOTFARM_MISSING_PACKAGES ?? '').split(' ')
  const wanted = ['iproute2', 'nftables', ...others].filter((name) => missing.includes(name))
  return wanted.length > 0 ? `not installed: ${wanted.join(', ')}` : undefined
}
