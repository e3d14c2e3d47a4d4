import { cable, Lab } from './namespaces.mjs'

const network = '10.78.0'
/** The addresses of further edges lie below those that tests give to devices. */
const edgesMax = 7

/**
 * An office's network segment: a switch (a bridge) with ports for emulated machines, one edge or several, and somebody
 * else's plain DHCP server. Each of them has its own network namespace. Simulated devices run on the switch.
 */
export class Segment {
  edgeIp = `${network}.1`
  dhcpIp = `${network}.2`
  switchIp = `${network}.3`
  broadcastIp = `${network}.255`
  subnet = `${network}.0/24`
  /** The addresses that machines get, from any DHCP server. */
  pool = `${network}.50-${network}.99`
  /** Where the switch itself is on the segment, and so simulated devices. */
  deviceInterface = 'br0'
  #lab
  #switch
  #edges
  /** @type {import('./namespaces.mjs').Namespace | undefined} */
  #dhcp
  /** @type {string[]} */
  #machinePorts

  /**
   * @param {string} name lower-case letters and digits
   * @param {{ machines?: number, edges?: number }} [size] `machines`: how many ports the switch has for them: tap0,
   *   tap1, …
   */
  constructor(name, { machines = 0, edges = 1 } = {}) {
    if (edges > edgesMax) throw new Error(`a segment has at most ${edgesMax} edges`)
    this.#lab = new Lab(name)
    this.#switch = this.#lab.namespace('s')
    this.#switch.bridge(this.deviceInterface)
    this.#edges = Array.from({ length: edges }, (_, index) => this.#lab.namespace(`e${index}`))
    for (const [index, edge] of this.#edges.entries())
      this.#plugIn(edge, 'edge0', edgePort(index), this.edgeIpOf(index))
    this.#machinePorts = Array.from({ length: machines }, (_, index) => `tap${index}`)
    for (const port of this.#machinePorts) this.#switch.tap(this.deviceInterface, port)
  }

  /** @param {number} index */
  edgeIpOf(index) {
    return index === 0 ? this.edgeIp : `${network}.${3 + index}`
  }

  /** @param {string} program @param {string[]} args */
  onEdge(program, args, index = 0) {
    return this.#edge(index).command(program, args)
  }

  /** Returns whether a program listens at a TCP port of the first edge's machine. */
  edgeListens(port) {
    return this.#edge(0).listens(port)
  }

  /** @param {string} program @param {string[]} args */
  onDhcp(program, args) {
    return this.#dhcpMachine().command(program, args)
  }

  /** For programs that use the machines' ports, such as an emulator, and for simulated devices. */
  onSwitch(program, args) {
    return this.#switch.command(program, args)
  }

  /**
   * The site's DHCP server: it gives addresses and knows nothing about booting. It advertises an IPv6 network too, as
   * an office's router does: the iPXE of 2019 in QEMU's network cards waits 15 s for one.
   * @param {string[]} more options of dnsmasq
   */
  dhcpServer(more = []) {
    return this.onDhcp('dnsmasq', [
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

  /** Gives the switch itself an address, as one with a management interface has. */
  addSwitchAddress() {
    this.#switch.address(this.deviceInterface, `${this.switchIp}/24`)
  }

  /**
   * Gives the switch an address of the segment, for simulated devices that do not ask for one.
   * @param {number} host its last byte
   */
  addDeviceAddress(host) {
    this.#switch.address(this.deviceInterface, `${network}.${host}/24`)
  }

  /**
   * Makes the switch a router, as the edge sees it: whatever has these addresses is behind it. Simulated devices there
   * may bind to any of them.
   * @param {string} network such as 10.79.0.0/24
   */
  routeThroughSwitch(network) {
    this.addSwitchAddress()
    this.#edge(0).ip('route', 'add', network, 'via', this.switchIp)
    this.#switch.ip('route', 'add', 'local', network, 'dev', 'lo')
    // A router asks for its neighbours by its own address, not by that of the packet's source.
    this.#switch.run('sh', '-c', `echo 2 > /proc/sys/net/ipv4/conf/${this.deviceInterface}/arp_announce`)
  }

  /**
   * Puts addresses behind the devices that nobody there answers; packets from them can be sent, and their answers are
   * taken.
   */
  addFalseAddresses(addresses, deviceIp) {
    this.#edge(0).ip('route', 'add', addresses, 'via', deviceIp)
    this.#switch.ip('route', 'add', 'local', addresses, 'dev', 'lo')
  }

  /** Unplugs an edge from the switch, or plugs it in again. */
  setEdgeCable(index, isIn) {
    this.#switch.ip('link', 'set', edgePort(index), isIn ? 'up' : 'down')
  }

  /**
   * Lets the ports of the switch, and the cards at their far ends, carry larger packets than Ethernet's. The bridge
   * takes the smallest size among its ports.
   * @param {number} mtu bytes of an IP packet
   */
  takeLargePackets(mtu) {
    for (const [index, edge] of this.#edges.entries()) {
      this.#switch.mtu(edgePort(index), mtu)
      edge.mtu('edge0', mtu)
    }
    if (this.#dhcp) {
      this.#switch.mtu('to-dhcp', mtu)
      this.#dhcp.mtu('dhcp0', mtu)
    }
    for (const port of this.#machinePorts) this.#switch.mtu(port, mtu)
  }

  /**
   * Lets the switch drop larger packets between the edge and the devices without telling either.
   * @param {number} mtu bytes of an IP packet
   */
  dropLargerThan(mtu) {
    const ports = this.#machinePorts.length > 0 ? this.#machinePorts : [edgePort(0)]
    for (const port of ports) this.#switch.mtu(port, mtu)
  }

  /** Loses this share of the packets between the first edge and all devices, in both directions. */
  loseEach(percent, protocols = '{ tcp, udp }') {
    const match = `meta l4proto ${protocols}`
    this.#edge(0).lose('edge0', percent, match)
    this.#switch.lose(edgePort(0), percent, match)
  }

  /** Loses this share of what the first edge sends; a recorder at its port of the switch sees all of it. */
  loseFromEdge(percent) {
    this.#switch.lose(edgePort(0), percent, 'meta l4proto { tcp, udp }')
  }

  /** Lets the first edge's card send packet by packet, so that each may be lost by itself. */
  cutSuperPackets() {
    this.#edge(0).segmentationOffload('edge0', false)
  }

  /** Loses this share of what arrives at each edge's UDP port. */
  loseAtEdges(percent, udpPort) {
    for (const edge of this.#edges) edge.lose('edge0', percent, `udp dport ${udpPort}`)
  }

  /** Closes the first edge's stream port for one machine, as a firewall between them would. */
  closeStream(mac) {
    this.#edge(0).drop('edge0', `ether saddr ${mac} udp dport 6910`)
  }

  /** How to record the beginning of every packet at a port of the switch. */
  capture(file, port = edgePort(0)) {
    return this.#switch.capture(port, file)
  }

  remove() {
    this.#lab.remove()
  }

  #edge(index) {
    const edge = this.#edges[index]
    if (!edge) throw new Error(`the segment has no edge ${index}`)
    return edge
  }

  /** Made when it is needed first. */
  #dhcpMachine() {
    if (!this.#dhcp) {
      this.#dhcp = this.#lab.namespace('d')
      this.#plugIn(this.#dhcp, 'dhcp0', 'to-dhcp', this.dhcpIp)
      this.#dhcp.ip('addr', 'add', 'fd78::2/64', 'dev', 'dhcp0', 'nodad')
    }
    return this.#dhcp
  }

  /** @param {import('./namespaces.mjs').Namespace} namespace */
  #plugIn(namespace, device, port, ip) {
    cable({ namespace: this.#switch, device: port }, { namespace, device, address: `${ip}/24` })
    this.#switch.join(this.deviceInterface, port)
  }
}

const edgePort = (index) => `to-edge${index || ''}`
