import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { RunningProcess } from './running-process.ts'

/**
 * A network segment for virtual machines, as in an office: a switch (a bridge) with the machines' ports, an edge, and a plain
 * DHCP server of somebody else. Each of the three has a network namespace of its own, so all ports are the real ones.
 */
export class MachineSegment {
  readonly edgeIp = '10.78.0.1'
  readonly #dhcpIp = '10.78.0.2'
  readonly #switch: string
  readonly #edge: string
  readonly #dhcp: string

  constructor(name: string, machines: number) {
    removeLeftOvers()
    // Of this process alone: another run of the tests may be under way on the same machine.
    const prefix = `bf-${name}-${process.pid}`
    this.#switch = `${prefix}-s`
    this.#edge = `${prefix}-e`
    this.#dhcp = `${prefix}-d`
    for (const namespace of this.#namespaces()) run('ip', 'netns', 'add', namespace)
    this.#onSwitch('ip', 'link', 'add', 'br0', 'type', 'bridge', 'stp_state', '0', 'forward_delay', '0')
    this.#onSwitch('ip', 'link', 'set', 'br0', 'up')
    this.#plugIn(this.#edge, 'edge0', 'to-edge', this.edgeIp)
    this.#plugIn(this.#dhcp, 'dhcp0', 'to-dhcp', this.#dhcpIp)
    run('ip', '-n', this.#dhcp, 'addr', 'add', 'fd78::2/64', 'dev', 'dhcp0', 'nodad')
    for (let index = 0; index < machines; index++) {
      this.#onSwitch('ip', 'tuntap', 'add', 'dev', `tap${index}`, 'mode', 'tap')
      this.#onSwitch('ip', 'link', 'set', `tap${index}`, 'master', 'br0', 'up')
    }
  }

  /**
   * The site's DHCP server: it gives addresses and knows nothing about booting. It advertises an IPv6 network too, as an
   * office's router does: the iPXE of 2019 in QEMU's network cards waits 15 s for one.
   */
  startDhcpServer(): RunningProcess {
    return this.#start(this.#dhcp, 'dnsmasq', [
      ...[
        '--keep-in-foreground',
        '--conf-file=/dev/null',
        '--port=0',
        '--interface=dhcp0',
        '--bind-interfaces',
      ],
      ...['--dhcp-range=10.78.0.50,10.78.0.99,255.255.255.0,1h', '--dhcp-leasefile=/dev/null', '--pid-file='],
      ...['--enable-ra', '--dhcp-range=::,constructor:dhcp0,ra-only', '--ra-param=dhcp0,4'],
      ...['--leasefile-ro', '--no-ping', '--log-dhcp', '--log-facility=-'],
    ])
  }

  startOnEdge(program: string, args: string[]): RunningProcess {
    return this.#start(this.#edge, program, args)
  }

  /** A program that uses the machines' ports, such as an emulator. */
  startOnSwitch(program: string, args: string[]): RunningProcess {
    return this.#start(this.#switch, program, args)
  }

  /** Records the begin of every packet at the edge's port of the switch. */
  startCapture(file: string): RunningProcess {
    return this.#start(this.#switch, 'tcpdump', [
      '-i',
      'to-edge',
      '-U',
      '--immediate-mode',
      '-s',
      '192',
      '-w',
      file,
    ])
  }

  /** Loses this share of the packets between the edge and the machines, in percent, both ways. */
  loseEach(percent: number): void {
    const table = 'netdev bootfarm_loss'
    for (const [namespace, device] of [
      [this.#edge, 'edge0'],
      [this.#switch, 'to-edge'],
    ] as const) {
      const nft = (rule: string) => run('ip', 'netns', 'exec', namespace, 'nft', rule)
      nft(`add table ${table}`)
      nft(
        `add chain ${table} lose { type filter hook ingress device "${device}" priority 0; policy accept; }`,
      )
      nft(`add rule ${table} lose meta l4proto { tcp, udp } numgen random mod 100 < ${percent} drop`)
    }
  }

  remove(): void {
    for (const namespace of this.#namespaces()) run('ip', 'netns', 'del', namespace)
  }

  #namespaces(): string[] {
    return [this.#switch, this.#edge, this.#dhcp]
  }

  /** A cable from the switch to a namespace that has one address. */
  #plugIn(namespace: string, device: string, port: string, ip: string): void {
    this.#onSwitch('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', device, 'netns', namespace)
    this.#onSwitch('ip', 'link', 'set', port, 'master', 'br0', 'up')
    run('ip', '-n', namespace, 'link', 'set', 'lo', 'up')
    run('ip', '-n', namespace, 'link', 'set', device, 'up')
    run('ip', '-n', namespace, 'addr', 'add', `${ip}/24`, 'broadcast', '+', 'dev', device)
  }

  #onSwitch(command: string, ...args: string[]): void {
    run('ip', 'netns', 'exec', this.#switch, command, ...args)
  }

  /** `ip netns exec` becomes the program, so the process's id is the program's. */
  #start(namespace: string, program: string, args: string[]): RunningProcess {
    return new RunningProcess('ip', ['netns', 'exec', namespace, program, ...args])
  }
}

/** Removes the namespaces of test processes that were killed. */
function removeLeftOvers(): void {
  const listed = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })
  for (const [, namespace = '', pid = ''] of listed.matchAll(/^(bf-[a-z]+-(\d+)-[sed])\b/gm)) {
    if (!existsSync(`/proc/${pid}`)) run('ip', 'netns', 'del', namespace)
  }
}

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
