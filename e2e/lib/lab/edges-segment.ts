import { execFileSync } from 'node:child_process'

/**
 * One network segment with several edges: a namespace for each and one for the devices, whose bridge joins them all. Real ports,
 * real broadcasts, and nothing of it reaches the machine's own network.
 */
export class EdgesSegment {
  readonly deviceInterface = 'br0'
  readonly #edges: string[]
  readonly #devices: string

  constructor(name: string, edgeCount: number) {
    this.#edges = Array.from({ length: edgeCount }, (_, index) => `bf-${name}-${index}`)
    this.#devices = `bf-${name}-d`
    run('ip', 'netns', 'add', this.#devices)
    const onDevices = (...args: string[]) => run('ip', '-n', this.#devices, ...args)
    onDevices('link', 'set', 'lo', 'up')
    onDevices('link', 'add', this.deviceInterface, 'type', 'bridge')
    onDevices('link', 'set', this.deviceInterface, 'up')
    for (const [index, edge] of this.#edges.entries()) {
      run('ip', 'netns', 'add', edge)
      const port = `port${index}`
      onDevices('link', 'add', port, 'type', 'veth', 'peer', 'name', 'edge0', 'netns', edge)
      onDevices('link', 'set', port, 'master', this.deviceInterface)
      onDevices('link', 'set', port, 'up')
      run('ip', '-n', edge, 'link', 'set', 'lo', 'up')
      run('ip', '-n', edge, 'link', 'set', 'edge0', 'up')
      run('ip', '-n', edge, 'addr', 'add', `${this.edgeIp(index)}/24`, 'dev', 'edge0')
    }
  }

  edgeIp(index: number): string {
    return `10.77.0.${index + 1}`
  }

  /** Loses this share, in percent, of what comes to each edge at this UDP port. */
  lose(percent: number, udpPort: number): void {
    for (const edge of this.#edges) {
      const nft = (rule: string) => run('ip', 'netns', 'exec', edge, 'nft', rule)
      nft('add table netdev loss')
      nft('add chain netdev loss lose { type filter hook ingress device "edge0" priority 0; policy accept; }')
      nft(`add rule netdev loss lose udp dport ${udpPort} numgen random mod 100 < ${percent} drop`)
    }
  }

  onEdge(index: number, command: string, ...args: string[]): [string, string[]] {
    return ['ip', ['netns', 'exec', this.#edges[index] ?? '', command, ...args]]
  }

  onDevices(command: string, ...args: string[]): [string, string[]] {
    return ['ip', ['netns', 'exec', this.#devices, command, ...args]]
  }

  remove(): void {
    for (const namespace of [...this.#edges, this.#devices]) run('ip', 'netns', 'del', namespace)
  }
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
