import dgram from 'node:dgram'
import { once } from 'node:events'

/** How often a ROM repeats its DISCOVER until it gets an offer. */
const discoverIntervalMs = 500

/** A device's firmware as raw packets, to do on purpose what real firmware does by mistake. */
export class RawDevice {
  readonly #socket = dgram.createSocket('udp4')
  readonly #server: string
  #mac: Buffer
  /** The address of the last offer (yiaddr). */
  offeredAddress = ''
  #xid: number
  #dhcpPort = 0

  constructor(server: string, mac: string) {
    this.#server = server
    this.#mac = Buffer.from(mac.replaceAll(':', ''), 'hex')
    this.#xid = this.#mac.readUInt32BE(2)
  }

  /**
   * Sends DISCOVER as the ROM of this architecture (RFC 4578), with a new transaction id each time; resolves with the
   * OFFER's boot file.
   */
  async discover(port: number, arch = 0): Promise<string> {
    this.#xid += 1
    this.#dhcpPort = port
    const ask = () => this.#send(port, this.#discoverPacket(arch))
    const asking = setInterval(ask, discoverIntervalMs)
    ask()
    for (;;) {
      const [bytes] = (await once(this.#socket, 'message')) as [Buffer]
      if (bytes.readUInt32BE(4) !== this.#xid) continue
      clearInterval(asking)
      this.offeredAddress = [...bytes.subarray(16, 20)].join('.')
      const file = bytes.subarray(108, 236)
      return file.subarray(0, file.indexOf(0)).toString()
    }
  }

  /** Sends DISCOVER without waiting for an answer. */
  ask(port: number, arch = 0): void {
    this.#xid += 1
    this.#send(port, this.#discoverPacket(arch))
  }

  /** Sends DISCOVER as a device with another MAC address, without waiting for an answer. */
  askAs(mac: string, port: number): void {
    this.#mac = Buffer.from(mac.replaceAll(':', ''), 'hex')
    this.ask(port)
  }

  /** Sends a TFTP packet and resolves with the answer's opcode and number. */
  async tftp(port: number, packet: Buffer): Promise<{ opcode: number; number: number }> {
    this.#send(port, packet)
    const bytes = await this.#tftpAnswer()
    return { opcode: bytes.readUInt16BE(0), number: bytes.readUInt16BE(2) }
  }

  /** Sends a packet that gets no answer. */
  say(port: number, packet: Buffer): void {
    this.#send(port, packet)
  }

  /** Reads a whole file in lock-step. */
  async download(port: number, file: string): Promise<void> {
    this.#send(port, readRequest(file))
    for (let expected = 1; ; expected += 1) {
      const bytes = await this.#tftpAnswer()
      this.#send(port, packetOf(4, expected & 0xffff))
      if (bytes.length < 516) return
    }
  }

  close(): void {
    this.#socket.close()
  }

  /** A slow server answers each DISCOVER that was repeated, and the later offers come now. */
  async #tftpAnswer(): Promise<Buffer> {
    for (;;) {
      const [bytes, sender] = (await once(this.#socket, 'message')) as [Buffer, dgram.RemoteInfo]
      if (sender.port !== this.#dhcpPort) return bytes
    }
  }

  #send(port: number, packet: Buffer): void {
    this.#socket.send(packet, port, this.#server)
  }

  #discoverPacket(arch: number): Buffer {
    const header = Buffer.alloc(240)
    header.set([1, 1, 6])
    header.writeUInt32BE(this.#xid, 4)
    this.#mac.copy(header, 28)
    header.writeUInt32BE(0x63825363, 236)
    const vendorClass = `PXEClient:Arch:${String(arch).padStart(5, '0')}:UNDI:002001`
    return Buffer.concat([
      header,
      option(53, [1]),
      option(55, [1, 3, 43, 54, 60, 66, 67]),
      option(60, [...Buffer.from(vendorClass)]),
      option(93, [arch >> 8, arch & 0xff]),
      option(94, [1, 2, 1]),
      Buffer.from([255]),
    ])
  }
}

/** Builds an RRQ (RFC 1350) with options (RFC 2347). */
export function readRequest(file: string, options: Record<string, number> = {}): Buffer {
  const words = Object.entries(options).flatMap(([name, value]) => [name, String(value)])
  return Buffer.concat([Buffer.from([0, 1]), Buffer.from(`${[file, 'octet', ...words].join('\0')}\0`)])
}

/** Builds a packet with opcode and number: ACK, or ERROR with its text. */
export function packetOf(opcode: number, number: number, text?: string): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt16BE(opcode, 0)
  head.writeUInt16BE(number, 2)
  return text === undefined ? head : Buffer.concat([head, Buffer.from(`${text}\0`)])
}

function option(code: number, value: number[]): Buffer {
  return Buffer.from([code, value.length, ...value])
}
