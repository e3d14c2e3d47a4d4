import { type Cursor, printable } from './cursor.ts'

/** A DHCP message (RFC 2131, figure 1; options RFC 2132, 4578) as a list of packets names it. */
export interface DhcpMessage {
  /** The device's, whoever sent it on. */
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

/** Null for what is no DHCP message. */
export function readDhcp(payload: Cursor): DhcpMessage | null {
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
