import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { cable, Lab, type Namespace as LabNamespace } from '../../../scripts/lib/lab/namespaces.mjs'
import { RunningProcess } from './running-process.ts'

/** The options of a lease, by the variable names of the DHCP client's script. */
export type Lease = Record<string, string>

/**
 * Two networks of one edge, and a third behind a relay agent in the second one:
 *
 *     client ── 10.91.1.0/24 ── edge ── 10.91.2.0/24 ── relay ── 10.91.3.0/24 ── far
 *
 * Each of the four has its own network namespace.
 */
export class DhcpNetworks {
  readonly #lab = new Lab('dhcp')
  readonly #namespaces: Record<Namespace, LabNamespace>
  readonly #directory: string
  readonly script: string

  constructor(directory: string) {
    this.#directory = directory
    const [client, edge, relay, far] = namespaces.map((name) => this.#lab.namespace(name)) as [
      LabNamespace,
      LabNamespace,
      LabNamespace,
      LabNamespace,
    ]
    this.#namespaces = { client, edge, relay, far }
    cable({ namespace: client, device: 'net0' }, { namespace: edge, device: 'net1', address: '10.91.1.1/24' })
    cable(
      { namespace: edge, device: 'net2', address: '10.91.2.1/24' },
      { namespace: relay, device: 'net2', address: '10.91.2.2/24' },
    )
    cable({ namespace: relay, device: 'net3', address: '10.91.3.1/24' }, { namespace: far, device: 'net0' })
    edge.ip('route', 'add', '10.91.3.0/24', 'via', '10.91.2.2')
    this.script = this.#makeScript()
  }

  /** Starts a program in one of the namespaces. */
  start(namespace: Namespace, command: string, args: string[]): RunningProcess {
    const inside = this.#namespaces[namespace].command(command, args)
    return new RunningProcess(inside.command, inside.args)
  }

  /** Runs busybox' client until it has an address or gives up; returns the lease, or undefined. */
  async udhcpc(namespace: Namespace, args: string[] = []): Promise<Lease | undefined> {
    const { lease } = await this.udhcpcWithOutput(namespace, args)
    return lease
  }

  async udhcpcWithOutput(namespace: Namespace, args: string[]): Promise<{ lease: Lease | undefined; output: string }> {
    const client = this.start(namespace, 'busybox', [
      'udhcpc',
      '-f',
      '-q',
      '-n',
      '-i',
      'net0',
      '-s',
      this.script,
      '-t',
      '3',
      '-T',
      '1',
      '-A',
      '1',
      ...args,
    ])
    await client.ended
    return { lease: leasesIn(client.output, 'bound').at(-1), output: client.output }
  }

  /** Starts ISC's client, which runs until it is stopped. `name` is that of its lease file. */
  dhclient(namespace: Namespace, name: string, args: string[] = []): RunningProcess {
    const file = (ending: string) => path.join(this.#directory, `${name}.${ending}`)
    return this.start(namespace, 'dhclient', [
      '-4',
      '-d',
      '-cf',
      '/dev/null',
      '-sf',
      this.script,
      '-lf',
      file('leases'),
      '-pf',
      file('pid'),
      ...args,
      'net0',
    ])
  }

  /** Bridges the client's network card with a port for a machine, tap0. */
  addMachinePort(namespace: 'client' | 'far'): {
    startMachine(program: string, args: string[]): RunningProcess
  } {
    const place = this.#namespaces[namespace]
    place.bridge('br0')
    place.join('br0', 'net0')
    place.tap('br0', 'tap0')
    return { startMachine: (program, args) => this.start(namespace, program, args) }
  }

  /** Makes the relay agent's machine a router too. */
  forward(): void {
    this.#namespaces.relay.run('sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward')
  }

  setMac(namespace: Namespace, mac: string): void {
    this.#namespaces[namespace].ip('link', 'set', 'net0', 'address', mac)
  }

  addAddress(namespace: Namespace, device: string, address: string): void {
    this.#namespaces[namespace].ip('addr', 'add', address, 'dev', device)
  }

  removeAddress(namespace: Namespace, device: string, address: string): void {
    this.#namespaces[namespace].ip('addr', 'del', address, 'dev', device)
  }

  flush(namespace: Namespace): void {
    this.#namespaces[namespace].ip('-4', 'addr', 'flush', 'dev', 'net0')
  }

  remove(): void {
    this.#lab.remove()
  }

  /** Writes a script that sets the address, as clients' own scripts do, and prints its variables. */
  #makeScript(): string {
    const script = path.join(this.#directory, 'dhcp-script')
    const text = `#!/bin/sh
what=\${reason:-$1}
case $what in
  bound|BOUND|REBOOT) ip -4 addr flush dev net0; ip addr add "\${new_ip_address:-$ip}/24" dev net0 ;;
  deconfig|EXPIRE|FAIL|RELEASE|STOP) ip -4 addr flush dev net0 ;;
esac
ip link set net0 up
echo "lease $what $(env | grep -E '^(new_[a-z_]+|ip|mask|router|dns|domain|ntpsrv|mtu|lease|hostname|serverid|boot_file|siaddr)=' | sort | tr '\\n' ';')"
`
    writeFileSync(script, text)
    chmodSync(script, 0o755)
    return script
  }
}

const namespaces = ['client', 'edge', 'relay', 'far'] as const
type Namespace = (typeof namespaces)[number]

/** Returns the variables of each call of the script for this event. */
export function leasesIn(output: string, event: string): Lease[] {
  return [...output.matchAll(new RegExp(`^lease ${event} (.*)$`, 'gm'))].map(([, text = '']) =>
    Object.fromEntries(
      text
        .split(';')
        .filter((pair) => pair.includes('='))
        .map((pair) => {
          const at = pair.indexOf('=')
          return [pair.slice(0, at), pair.slice(at + 1)]
        }),
    ),
  )
}
