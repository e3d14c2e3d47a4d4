import type { CapturedPacket } from '../capture-schema.ts'
import { Cursor } from './cursor.ts'
import { readDhcp } from './dhcp-words.ts'
import { readTcp } from './tcp-words.ts'
import { readTftp } from './tftp-words.ts'

/** Says in words what the packets of one boot are, one after the other: later ones are understood by earlier ones. */

type Words = Pick<CapturedPacket, 'direction' | 'protocol' | 'what'>

const etherType = { ipv4: 0x0800, arp: 0x0806, vlan: 0x8100, ipv6: 0x86dd } as const
const ipProtocol = { icmp: 1, tcp: 6, udp: 17, icmpv6: 58 } as const
const port = { dhcpServer: 67, dhcpClient: 68, tftp: 69, pxe: 4011, stream: 6910 } as const
const ethernetSize = 14
const vlanTagsMax = 2
const udpHeaderSize = 8

export class PacketWords {
  readonly #deviceMac: string
  /** What DHCP said the device's address is: behind a router its packets come from another MAC address. */
  #deviceIp: string | undefined
  /** `ip:port` of who asked for a file by TFTP: its transfer has ports of its own (RFC 1350, section 4). */
  readonly #tftpClients = new Set<string>()

  constructor(deviceMac: string) {
    this.#deviceMac = deviceMac
  }

  read(bytes: Uint8Array): Words {
    const frame = new Cursor(bytes)
    let at = ethernetSize
    let type = frame.u16(12)
    for (let tags = 0; type === etherType.vlan && tags < vlanTagsMax; tags++) {
      type = frame.u16(at + 2)
      at += 4
    }
    const byMac = this.#directionOf(frame.mac(6), frame.mac(0), this.#deviceMac)
    const packet = frame.from(at)
    if (type === etherType.ipv4) return this.#readIpv4(packet, byMac)
    if (type === etherType.arp) return { direction: byMac, protocol: 'other', what: arpWords(packet) }
    if (type === etherType.ipv6) return { direction: byMac, protocol: 'other', what: ipv6Words(packet) }
    return { direction: byMac, protocol: 'other', what: `Ethernet type 0x${(type ?? 0).toString(16)}` }
  }

  #directionOf(source: string | undefined, destination: string | undefined, own: string | undefined) {
    if (own === undefined) return 'other'
    if (source === own) return 'from_device'
    return destination === own ? 'to_device' : 'other'
  }

  #readIpv4(packet: Cursor, byMac: Words['direction']): Words {
    const headerSize = ((packet.u8(0) ?? 0) & 0x0f) * 4
    const [source, destination] = [packet.ipv4(12) ?? '?', packet.ipv4(16) ?? '?']
    const direction = byMac === 'other' ? this.#directionOf(source, destination, this.#deviceIp) : byMac
    const other = (what: string): Words => ({ direction, protocol: 'other', what })
    const totalSize = packet.u16(2) ?? 0
    // Ethernet pads short frames: what lies behind the packet's own size is not part of it.
    const payload = packet.from(headerSize, totalSize - headerSize)
    const fragment = packet.u16(6) ?? 0
    if ((fragment & 0x1fff) !== 0) return other(`IP fragment, ${totalSize} B, ${source} to ${destination}`)
    const protocol = packet.u8(9)
    if (protocol === ipProtocol.udp) return this.#readUdp(payload, { source, destination, direction })
    if (protocol === ipProtocol.tcp) {
      const { isHttp, what } = readTcp(payload, totalSize - headerSize)
      return { direction, protocol: isHttp ? 'http' : 'other', what }
    }
    if (protocol === ipProtocol.icmp) return other(icmpWords(payload))
    return other(`IP protocol ${protocol ?? '?'}, ${source} to ${destination}`)
  }

  #readUdp(
    datagram: Cursor,
    { source, destination, direction }: { source: string; destination: string; direction: Words['direction'] },
  ): Words {
    const [from, to] = [datagram.u16(0) ?? 0, datagram.u16(2) ?? 0]
    const payload = datagram.from(udpHeaderSize)
    const sizeBytes = Math.max(0, (datagram.u16(4) ?? 0) - udpHeaderSize)
    const isDhcp = [from, to].some((number) => number === port.dhcpServer || number === port.pxe)
    const dhcp = isDhcp || to === port.dhcpClient ? readDhcp(payload) : null
    if (dhcp) {
      const isDevices = dhcp.clientMac === this.#deviceMac
      if (isDevices && dhcp.clientIp) this.#deviceIp = dhcp.clientIp
      if (!isDevices) return { direction, protocol: 'dhcp', what: `${dhcp.what}, of ${dhcp.clientMac}` }
      return { direction: dhcp.fromClient ? 'from_device' : 'to_device', protocol: 'dhcp', what: dhcp.what }
    }
    if (to === port.tftp) this.#tftpClients.add(`${source}:${from}`)
    const isTftp = this.#tftpClients.has(`${source}:${from}`) || this.#tftpClients.has(`${destination}:${to}`)
    const tftp = isTftp ? readTftp(payload, sizeBytes) : null
    if (tftp) return { direction, protocol: 'tftp', what: tftp }
    const name = from === port.stream || to === port.stream ? 'Stream' : 'UDP'
    return { direction, protocol: 'other', what: `${name}, ${sizeBytes} B, port ${from} to ${to}` }
  }
}

/** RFC 826. */
function arpWords(packet: Cursor): string {
  const [sender, target] = [packet.ipv4(14) ?? '?', packet.ipv4(24) ?? '?']
  return packet.u16(6) === 1 ? `ARP who has ${target}, asks ${sender}` : `ARP ${sender} is at ${packet.mac(8) ?? '?'}`
}

/** RFC 792. */
function icmpWords(message: Cursor): string {
  const [type, code] = [message.u8(0), message.u8(1)]
  if (type === 0 || type === 8) return `ICMP echo ${type === 8 ? 'request' : 'reply'}`
  if (type === 3 && code === 3) return 'ICMP port unreachable'
  if (type === 3 && code === 4) return `ICMP fragmentation needed, next MTU ${message.u16(6) ?? '?'}`
  if (type === 3) return `ICMP destination unreachable, code ${code ?? '?'}`
  return `ICMP type ${type ?? '?'}`
}

/** RFC 4861, section 4, by type. */
const neighbourMessages: Record<number, string> = {
  133: 'router solicitation',
  134: 'router advertisement',
  135: 'neighbour solicitation',
  136: 'neighbour advertisement',
}

/** Behind extension headers nothing is looked for: no boot of ours has any. */
function ipv6Words(packet: Cursor): string {
  const next = packet.u8(6)
  if (next === ipProtocol.icmpv6) {
    const type = packet.u8(40)
    return `IPv6 ${neighbourMessages[type ?? 0] ?? `ICMP type ${type ?? '?'}`}`
  }
  if (next === ipProtocol.udp) return `IPv6 UDP, port ${packet.u16(40) ?? '?'} to ${packet.u16(42) ?? '?'}`
  return `IPv6 protocol ${next ?? '?'}`
}
