import { type CapturedPacket, capturePacketsShownMax } from '../schema.ts'
import { Cursor, printable } from './cursor.ts'
import { pcapRecords } from './pcap-file.ts'

export function countPackets(pcap: Uint8Array): number {
  let count = 0
  for (const _record of pcapRecords(pcap)) count += 1
  return count
}

/** The first packets of a capture in words. @param deviceMac lower case, colon-separated */
export function listPackets(pcap: Uint8Array, deviceMac: string): CapturedPacket[] {
  const words = new PacketWords(deviceMac)
  const packets: CapturedPacket[] = []
  let beginUs: number | null = null
  for (const { atUs, frame, sizeBytes } of pcapRecords(pcap)) {
    if (packets.length === capturePacketsShownMax) break
    beginUs ??= atUs
    packets.push({ atUs: atUs - beginUs, ...words.read(frame), sizeBytes })
  }
  return packets
}

/** Says in words what the packets of one boot are, one after the other: later ones are understood by earlier ones. */

type Words = Pick<CapturedPacket, 'direction' | 'protocol' | 'what'>

const etherType = { ipv4: 0x0800, arp: 0x0806, vlan: 0x8100, ipv6: 0x86dd } as const
const ipProtocol = { icmp: 1, tcp: 6, udp: 17, icmpv6: 58 } as const
const port = { dhcpServer: 67, dhcpClient: 68, tftp: 69, pxe: 4011, stream: 6910 } as const
const ethernetSize = 14
const vlanTagsMax = 2
const udpHeaderSize = 8

class PacketWords {
  readonly #deviceMac: string
  /** The device's address according to DHCP: behind a router its packets come from another MAC address. */
  #deviceIp: string | undefined
  /** `ip:port` of the TFTP client: its transfer has separate ports (RFC 1350, section 4). */
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
    // Ethernet pads short frames: bytes beyond the packet's own size are not part of it.
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

/** Extension headers are not followed: no boot of ours has any. */
function ipv6Words(packet: Cursor): string {
  const next = packet.u8(6)
  if (next === ipProtocol.icmpv6) {
    const type = packet.u8(40)
    return `IPv6 ${neighbourMessages[type ?? 0] ?? `ICMP type ${type ?? '?'}`}`
  }
  if (next === ipProtocol.udp) return `IPv6 UDP, port ${packet.u16(40) ?? '?'} to ${packet.u16(42) ?? '?'}`
  return `IPv6 protocol ${next ?? '?'}`
}

/** A DHCP message (RFC 2131, figure 1; options RFC 2132, 4578) as a list of packets names it. */
interface DhcpMessage {
  /** The device's MAC address, even in a forwarded packet. */
  clientMac: string
  fromClient: boolean
  /** The address that the client has, or is given; undefined for none. */
  clientIp: string | undefined
  what: string
}

const fixedSize = 236
const magicCookie = 0x63825363
const optionsMax = 128
const messageTypes = ['', 'DISCOVER', 'OFFER', 'REQUEST', 'DECLINE', 'ACK', 'NAK', 'RELEASE', 'INFORM']
const option = { serverId: 54, messageType: 53, vendorClass: 60, file: 67, userClass: 77 } as const
const noAddress = '0.0.0.0'

/** Returns null if the payload is no DHCP message. */
function readDhcp(payload: Cursor): DhcpMessage | null {
  if (payload.u32(fixedSize) !== magicCookie) return null
  const options = readOptions(payload.from(fixedSize + 4))
  const type = messageTypes[options.get(option.messageType)?.u8(0) ?? 0] || 'message'
  const fromClient = payload.u8(0) === 1
  const [ciaddr, yiaddr, siaddr] = [12, 16, 20].map((at) => payload.ipv4(at))
  const file = options.get(option.file)?.text(0, 255) || payload.text(108, 128)
  const words = fromClient
    ? [
        textOf(options.get(option.vendorClass)),
        isIpxe(options.get(option.userClass)) ? 'iPXE' : '',
        asksOf(options.get(option.serverId)),
      ]
    : [
        yiaddr && yiaddr !== noAddress ? `address ${yiaddr}` : 'no address',
        siaddr && siaddr !== noAddress ? `next server ${siaddr}` : '',
        file ? `file ${file}` : '',
      ]
  const clientIp = [ciaddr, yiaddr].find((ip) => ip && ip !== noAddress)
  return {
    clientMac: payload.mac(28) ?? '',
    fromClient,
    clientIp,
    what: `DHCP ${type}${words
      .filter(Boolean)
      .map((word) => `, ${word}`)
      .join('')}`,
  }
}

/** By code; the first one of a code counts. */
function readOptions(area: Cursor): Map<number, Cursor> {
  const options = new Map<number, Cursor>()
  for (let at = 0, seen = 0; seen < optionsMax; seen++) {
    const code = area.u8(at)
    if (code === undefined || code === 255) break
    if (code === 0) {
      at += 1
      continue
    }
    const size = area.u8(at + 1)
    if (size === undefined) break
    if (!options.has(code)) options.set(code, area.from(at + 2, size))
    at += 2 + size
  }
  return options
}

const textOf = (value: Cursor | undefined) => (value ? printable(value.bytes) : '')
const isIpxe = (value: Cursor | undefined) => textOf(value).includes('iPXE')
const asksOf = (value: Cursor | undefined) => (value?.ipv4(0) ? `of server ${value.ipv4(0)}` : '')

const flag = { fin: 1, syn: 2, rst: 4, ack: 16 } as const
const requestLine = /^(GET|HEAD|POST|PUT|DELETE|OPTIONS) \S+ HTTP\/1\./
const statusLine = /^HTTP\/1\.\d (\d{3} ?.*)$/

interface TcpWords {
  isHttp: boolean
  what: string
}

/**
 * A TCP segment in words (RFC 9293, section 3.1), requests and answers of HTTP/1 by their first line.
 * @param segmentSize of the whole segment on the wire, which may be more than was recorded
 */
function readTcp(segment: Cursor, segmentSize: number): TcpWords {
  const flags = segment.u8(13) ?? 0
  const headerSize = ((segment.u8(12) ?? 0) >> 4) * 4
  const payload = segment.from(headerSize)
  const payloadSize = Math.max(0, segmentSize - headerSize)
  const line = printable(payload.bytes.subarray(0, lineEnd(payload.bytes)))
  if (requestLine.test(line)) return { isHttp: true, what: `HTTP ${line.replace(/ HTTP\/1\.\d$/, '')}` }
  const status = statusLine.exec(line)
  if (status) return { isHttp: true, what: `HTTP ${status[1]?.trim()}` }
  const ports = `port ${segment.u16(0) ?? '?'} to ${segment.u16(2) ?? '?'}`
  if (flags & flag.rst) return { isHttp: false, what: `TCP reset, ${ports}` }
  if (flags & flag.syn) return { isHttp: false, what: `TCP connect${flags & flag.ack ? ' answered' : ''}, ${ports}` }
  if (flags & flag.fin) return { isHttp: false, what: `TCP close, ${ports}` }
  return {
    isHttp: false,
    what: payloadSize > 0 ? `TCP data, ${payloadSize} B, ${ports}` : `TCP acknowledgement, ${ports}`,
  }
}

/** Returns the first line without its end; a binary header has no line. */
function lineEnd(bytes: Uint8Array): number {
  const end = bytes.subarray(0, 512).findIndex((byte) => byte === 0x0d || byte === 0x0a)
  return Math.max(end, 0)
}

const tftpOptionsMax = 16

/**
 * A TFTP packet in words (RFC 1350, section 5; options RFC 2347); null for what is none.
 * @param sizeBytes on the wire, which may be more than was recorded
 */
function readTftp(payload: Cursor, sizeBytes: number): string | null {
  switch (payload.u16(0)) {
    case 1:
    case 2:
      return requestWords(payload)
    case 3:
      return `TFTP DATA block ${payload.u16(2) ?? '?'}, ${Math.max(0, sizeBytes - 4)} B`
    case 4:
      return `TFTP ACK of block ${payload.u16(2) ?? '?'}`
    case 5:
      return `TFTP ERROR ${payload.u16(2) ?? '?'}: ${payload.text(4, 128)}`
    case 6:
      return `TFTP OACK ${pairs(strings(payload, 2))}`
    default:
      return null
  }
}

function requestWords(payload: Cursor): string {
  const [file = '', mode = '', ...options] = strings(payload, 2)
  const asked = options.length > 0 ? `, ${pairs(options)}` : ''
  return `TFTP ${payload.u16(0) === 1 ? 'RRQ' : 'WRQ'} ${file} (${mode})${asked}`
}

function strings(payload: Cursor, from: number): string[] {
  const found: string[] = []
  for (let at = from; at < payload.size && found.length < 2 + 2 * tftpOptionsMax; ) {
    const end = payload.bytes.indexOf(0, at)
    const stop = end < 0 ? payload.size : end
    found.push(printable(payload.bytes.subarray(at, stop)))
    at = stop + 1
  }
  return found
}

function pairs(texts: string[]): string {
  const named = []
  for (let index = 0; index + 1 < texts.length; index += 2) named.push(`${texts[index]} ${texts[index + 1]}`)
  return named.join(', ')
}
