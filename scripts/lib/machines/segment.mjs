import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/**
 * A network segment for virtual machines, as in an office: a switch (a bridge) with the machines' ports, an edge or several, and a
 * plain DHCP server of somebody else. Each of them has a network namespace of its own, so all ports are the real ones and nothing
 * of it is seen outside.
 */
export class NetworkSegment {
  edgeIp = '10.78.0.1'
  dhcpIp = '10.78.0.2'
  switchIp = '10.78.0.3'
  broadcastIp = '10.78.0.255'
  /** The addresses that machines get, of whoever gives them. */
  pool = '10.78.0.50-10.78.0.99'
  #switch
  #edges
  #dhcp
  #machines

  /**
   * The namespaces carry the number of the process that made them: two never meet, and what one left behind that was killed is
   * removed by the next.
   * @param {string} name lower-case letters
   * @param {number} machines how many ports the switch has for machines: tap0, tap1, …
   * @param {number} edges
   */
  constructor(name, machines, edges = 1) {
    removeLeftOvers()
    this.#machines = machines
    const prefix = `bf-${name}-${process.pid}`
    this.#switch = `${prefix}-s`
    this.#edges = Array.from({ length: edges }, (_, index) => `${prefix}-e${index || ''}`)
    this.#dhcp = `${prefix}-d`
    for (const namespace of this.#namespaces()) run('ip', 'netns', 'add', namespace)
    this.#runOnSwitch('ip', 'link', 'add', 'br0', 'type', 'bridge', 'stp_state', '0', 'forward_delay', '0')
    this.#runOnSwitch('ip', 'link', 'set', 'br0', 'up')
    for (const [index, edge] of this.#edges.entries())
      this.#plugIn(edge, 'edge0', edgePort(index), this.edgeIpOf(index))
    this.#plugIn(this.#dhcp, 'dhcp0', 'to-dhcp', this.dhcpIp)
    run('ip', '-n', this.#dhcp, 'addr', 'add', 'fd78::2/64', 'dev', 'dhcp0', 'nodad')
    for (let index = 0; index < machines; index++) {
      this.#runOnSwitch('ip', 'tuntap', 'add', 'dev', `tap${index}`, 'mode', 'tap')
      this.#runOnSwitch('ip', 'link', 'set', `tap${index}`, 'master', 'br0', 'up')
    }
  }

  /**
   * The site's DHCP server: it gives addresses and knows nothing about booting. It advertises an IPv6 network too, as an
   * office's router does: the iPXE of 2019 in QEMU's network cards waits 15 s for one.
   * @param {string[]} more what else dnsmasq does
   */
  dhcpServer(more = []) {
    return inNamespace(this.#dhcp, 'dnsmasq', [
      '--keep-in-foreground',
      '--conf-file=/dev/null',
      '--port=0',
      '--interface=dhcp0',
      '--bind-interfaces',
      `--dhcp-range=${this.pool.replace('-', ',')},255.255.255.0,1h`,
      '--dhcp-leasefile=/dev/null',
      '--pid-file=',
      '--enable-ra',
      '--dhcp-range=::,constructor:dhcp0,ra-only',
      '--ra-param=dhcp0,4',
      '--leasefile-ro',
      '--no-ping',
      '--log-dhcp',
      '--log-facility=-',
      ...more,
    ])
  }

  onEdge(program, args, index = 0) {
    return inNamespace(this.#edges[index] ?? '', program, args)
  }

  /** The first one is `edgeIp`; those after it come behind the addresses of the others on the segment. */
  edgeIpOf(index) {
    return index === 0 ? this.edgeIp : `10.78.0.${9 + index}`
  }

  /** Pulls the cable of an edge out of the switch, or puts it back. */
  setEdgeCable(index, isIn) {
    this.#runOnSwitch('ip', 'link', 'set', edgePort(index), isIn ? 'up' : 'down')
  }

  onDhcp(program, args) {
    return inNamespace(this.#dhcp, program, args)
  }

  /** For programs that use the machines' ports, such as an emulator. */
  onSwitch(program, args) {
    return inNamespace(this.#switch, program, args)
  }

  /** Gives the switch itself an address, as one with a management interface has. */
  addSwitchAddress() {
    this.#runOnSwitch('ip', 'addr', 'add', `${this.switchIp}/24`, 'broadcast', '+', 'dev', 'br0')
  }

  /**
   * Ports of the switch, and the cards at their other ends, that take larger packets than Ethernet's. The bridge takes what the
   * smallest of its ports does.
   * @param {number} mtu bytes of an IP packet
   */
  takeLargePackets(mtu) {
    for (const port of [...this.#edges.map((_, index) => edgePort(index)), 'to-dhcp', ...this.#machinePorts()])
      this.#runOnSwitch('ip', 'link', 'set', port, 'mtu', String(mtu))
    for (const edge of this.#edges) run('ip', '-n', edge, 'link', 'set', 'edge0', 'mtu', String(mtu))
    run('ip', '-n', this.#dhcp, 'link', 'set', 'dhcp0', 'mtu', String(mtu))
  }

  /**
   * Ports of the switch that drop what is larger, without a word to anybody.
   * @param {number} mtu bytes of an IP packet
   */
  dropLargerThan(mtu) {
    for (const port of this.#machinePorts()) this.#runOnSwitch('ip', 'link', 'set', port, 'mtu', String(mtu))
  }

  /** Loses this share of the packets between the edge and the machines, in percent, both ways. */
  loseEach(percent) {
    const table = 'netdev bootfarm_loss'
    const ends = [
      [this.#edges[0] ?? '', 'edge0'],
      [this.#switch, 'to-edge'],
    ]
    for (const [namespace, device] of ends) {
      const nft = (rule) => run('ip', 'netns', 'exec', namespace, 'nft', rule)
      nft(`add table ${table}`)
      nft(`add chain ${table} lose { type filter hook ingress device "${device}" priority 0; policy accept; }`)
      nft(`add rule ${table} lose meta l4proto { tcp, udp } numgen random mod 100 < ${percent} drop`)
    }
  }

  /** Closes the edge's stream port for one machine, as a firewall between them would. */
  closeStream(mac) {
    const table = 'netdev bootfarm_closed'
    const nft = (rule) => run('ip', 'netns', 'exec', this.#edges[0] ?? '', 'nft', rule)
    nft(`add table ${table}`)
    nft(`add chain ${table} closed { type filter hook ingress device "edge0" priority 0; policy accept; }`)
    nft(`add rule ${table} closed ether saddr ${mac} udp dport 6910 drop`)
  }

  remove() {
    for (const namespace of this.#namespaces()) run('ip', 'netns', 'del', namespace)
  }

  #machinePorts() {
    return Array.from({ length: this.#machines }, (_, index) => `tap${index}`)
  }

  #namespaces() {
    return [this.#switch, ...this.#edges, this.#dhcp]
  }

  /** A cable from the switch to a namespace that has one address. */
  #plugIn(namespace, device, port, ip) {
    this.#runOnSwitch('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', device, 'netns', namespace)
    this.#runOnSwitch('ip', 'link', 'set', port, 'master', 'br0', 'up')
    run('ip', '-n', namespace, 'link', 'set', 'lo', 'up')
    run('ip', '-n', namespace, 'link', 'set', device, 'up')
    run('ip', '-n', namespace, 'addr', 'add', `${ip}/24`, 'broadcast', '+', 'dev', device)
  }

  #runOnSwitch(command, ...args) {
    run('ip', 'netns', 'exec', this.#switch, command, ...args)
  }
}

/**
 * `ip netns exec` becomes the program, so the process's id is the program's.
 * @param {string} namespace
 * @param {string} program
 * @param {string[]} args
 * @returns {{ command: string, args: string[] }}
 */
function inNamespace(namespace, program, args) {
  return { command: 'ip', args: ['netns', 'exec', namespace, program, ...args] }
}

const edgePort = (index) => `to-edge${index || ''}`

/** Removes the namespaces of processes that were killed. */
function removeLeftOvers() {
  const listed = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })
  for (const [, namespace = '', pid = ''] of listed.matchAll(/^(bf-[a-z]+-(\d+)-(?:[sd]|e\d*))\b/gm)) {
    if (!existsSync(`/proc/${pid}`)) run('ip', 'netns', 'del', namespace)
  }
}

/**
 * @param {string} command
 * @param {string[]} args
 */
function run(command, ...args) {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}
