import { execFileSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { RunningProcess } from './running-process.ts'

/** What a DHCP client was told, by the names of its own script's variables. */
export type Told = Record<string, string>

/**
 * Two networks of one edge, and a third behind a relay agent in the second one:
 *
 *     client ── 10.91.1.0/24 ── edge ── 10.91.2.0/24 ── relay ── 10.91.3.0/24 ── far
 *
 * Each of the four has a network namespace of its own.
 */
export class DhcpNetworks {
  readonly #prefix = `bf-dhcp-${process.pid}`
  readonly #directory: string
  readonly script: string

  constructor(directory: string) {
    this.#directory = directory
    for (const namespace of namespaces) run('ip', 'netns', 'add', this.#name(namespace))
    this.#cable(['client', 'net0', undefined], ['edge', 'net1', '10.91.1.1/24'])
    this.#cable(['edge', 'net2', '10.91.2.1/24'], ['relay', 'net2', '10.91.2.2/24'])
    this.#cable(['relay', 'net3', '10.91.3.1/24'], ['far', 'net0', undefined])
    this.#ip('edge', 'route', 'add', '10.91.3.0/24', 'via', '10.91.2.2')
    this.script = this.#makeScript()
  }

  /** A program in one of the namespaces. */
  start(namespace: Namespace, command: string, args: string[]): RunningProcess {
    return new RunningProcess('ip', ['netns', 'exec', this.#name(namespace), command, ...args])
  }

  /** busybox' client until it has an address or has given up; what it was told, or undefined. */
  async udhcpc(namespace: Namespace, args: string[] = []): Promise<Told | undefined> {
    const { told } = await this.udhcpcSaying(namespace, args)
    return told
  }

  async udhcpcSaying(namespace: Namespace, args: string[]): Promise<{ told: Told | undefined; output: string }> {
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
    return { told: toldIn(client.output, 'bound').at(-1), output: client.output }
  }

  /** ISC's client, which goes on until it is stopped. `name`: of its lease file. */
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

  /** Makes the client's network card a port of a switch that has another one for a machine, tap0. */
  addMachinePort(namespace: 'client' | 'far'): {
    startMachine(program: string, args: string[]): RunningProcess
  } {
    this.#ip(namespace, 'link', 'add', 'br0', 'type', 'bridge', 'stp_state', '0', 'forward_delay', '0')
    this.#ip(namespace, 'tuntap', 'add', 'dev', 'tap0', 'mode', 'tap')
    for (const port of ['net0', 'tap0']) this.#ip(namespace, 'link', 'set', port, 'master', 'br0', 'up')
    this.#ip(namespace, 'link', 'set', 'br0', 'up')
    return { startMachine: (program, args) => this.start(namespace, program, args) }
  }

  /** The relay agent's machine is a router too. */
  forward(): void {
    run('ip', 'netns', 'exec', this.#name('relay'), 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward')
  }

  setMac(namespace: Namespace, mac: string): void {
    this.#ip(namespace, 'link', 'set', 'net0', 'address', mac)
  }

  addAddress(namespace: Namespace, device: string, address: string): void {
    this.#ip(namespace, 'addr', 'add', address, 'dev', device)
  }

  removeAddress(namespace: Namespace, device: string, address: string): void {
    this.#ip(namespace, 'addr', 'del', address, 'dev', device)
  }

  flush(namespace: Namespace): void {
    this.#ip(namespace, '-4', 'addr', 'flush', 'dev', 'net0')
  }

  remove(): void {
    for (const namespace of namespaces) run('ip', 'netns', 'del', this.#name(namespace))
  }

  #name(namespace: Namespace): string {
    return `${this.#prefix}-${namespace}`
  }

  #cable(...ends: [End, End]): void {
    const [[one, oneDevice], [other, otherDevice]] = ends
    this.#ip(one, 'link', 'add', oneDevice, 'type', 'veth', 'peer', 'name', otherDevice, 'netns', this.#name(other))
    for (const [namespace, device, address] of ends) {
      this.#ip(namespace, 'link', 'set', 'lo', 'up')
      this.#ip(namespace, 'link', 'set', device, 'up')
      if (address) this.#ip(namespace, 'addr', 'add', address, 'broadcast', '+', 'dev', device)
    }
  }

  #ip(namespace: Namespace, ...args: string[]): void {
    run('ip', '-n', this.#name(namespace), ...args)
  }

  /** Sets the address, as clients' own scripts do, and prints what it was called with. */
  #makeScript(): string {
    const script = path.join(this.#directory, 'dhcp-script')
    const text = `#!/bin/sh
what=\${reason:-$1}
case $what in
  bound|BOUND|REBOOT) ip -4 addr flush dev net0; ip addr add "\${new_ip_address:-$ip}/24" dev net0 ;;
  deconfig|EXPIRE|FAIL|RELEASE|STOP) ip -4 addr flush dev net0 ;;
esac
ip link set net0 up
echo "told $what $(env | grep -E '^(new_[a-z_]+|ip|mask|router|dns|domain|ntpsrv|mtu|lease|hostname|serverid|boot_file|siaddr)=' | sort | tr '\\n' ';')"
`
    writeFileSync(script, text)
    chmodSync(script, 0o755)
    return script
  }
}

const namespaces = ['client', 'edge', 'relay', 'far'] as const
type Namespace = (typeof namespaces)[number]
/** A namespace, its device, and the device's address. */
type End = [Namespace, string, string | undefined]

/** Each call of the script for this event. */
export function toldIn(output: string, event: string): Told[] {
  return [...output.matchAll(new RegExp(`^told ${event} (.*)$`, 'gm'))].map(([, text = '']) =>
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

function run(command: string, ...args: string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
