import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'

const version = [3, 3]
/** ECDHE_RSA_WITH_AES_128_GCM_SHA256: with TLS 1.2 the certificate is sent in clear text. */
const cipherSuite = [0xc0, 0x2f]

const size = (bytes: number, value: number): number[] =>
  Array.from({ length: bytes }, (_, index) => (value >>> (8 * (bytes - 1 - index))) & 0xff)
const message = (type: number, body: number[]): number[] => [type, ...size(3, body.length), ...body]
const record = (body: number[]): number[] => [22, ...version, ...size(2, body.length), ...body]
const sequence = (...parts: number[][]): number[] => {
  const content = parts.flat()
  return [0x30, 0x82, ...size(2, content.length), ...content]
}

const helloOf = (chosen: number[], random: number): number[] =>
  record(message(2, [...chosen, ...Array.from({ length: 32 }, () => random), 0, ...cipherSuite, 0]))
const withCertificate = (certificate: number[]): number[] => {
  const list = [...size(3, certificate.length), ...certificate]
  return [...helloOf(version, 1), ...record(message(11, [...size(3, list.length), ...list]))]
}

/** What a machine on the path can answer to a ClientHello without any key, by name. */
export const hostileAnswers = {
  'a certificate that ends in its length': withCertificate([0x30, 0x84]),
  'a certificate that is longer than the message': withCertificate([0x30, 0x84, 0xff, 0xff, 0xff, 0xff]),
  'a field of a certificate that runs beyond its end': withCertificate(
    sequence(sequence([0xa0, 3, 2, 1, 2], [2, 1, 1], [0x30, 0x7f])),
  ),
  'an empty certificate': withCertificate([]),
  'a version that does not exist': helloOf([0x7f, 0x7f], 1),
} satisfies Record<string, number[]>

/** Answers every connection's first bytes with the same bytes, as a machine on an edge's path may do. */
export class HostileTls {
  readonly #server: net.Server
  readonly #sockets = new Set<net.Socket>()
  /** How many connections have sent something. */
  answered = 0

  private constructor(answer: number[]) {
    this.#server = net.createServer((socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
      socket.on('error', () => socket.destroy())
      socket.once('data', () => {
        this.answered += 1
        socket.write(Buffer.from(answer))
      })
    })
  }

  static async open(answer: number[], port = 0): Promise<HostileTls> {
    const hostile = new HostileTls(answer)
    hostile.#server.listen(port, '127.0.0.1')
    await once(hostile.#server, 'listening')
    return hostile
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }
}
