import { randomBytes } from 'node:crypto'
import dgram from 'node:dgram'
import http from 'node:http'
import { emitStreamPacket } from '@bootfarm/proto/testing/stream-emit'
import { parseStreamPacket } from '@bootfarm/proto/testing/stream-parse'
import {
  agreeOnKeys,
  helloProof,
  openPacket,
  publicOf,
  type StreamKeys,
  sealPacket,
  welcomeKnownSize,
} from '@bootfarm/proto/testing/stream-seal'
import type { TpmKey } from './tpm-key.ts'

type StreamPacket = ReturnType<typeof parseStreamPacket>
type StreamHello = Extract<StreamPacket, { type: 'hello' }>
type StreamWelcome = Extract<StreamPacket, { type: 'welcome' }>
type Session = { welcome: StreamWelcome; keys: StreamKeys; counter: bigint }

/** How often an unanswered packet is retransmitted. */
const repeatMs = 200
const busyRetryMs = 1000
const noId = '00'.repeat(8)
const noCookie = '00'.repeat(32)
/** Stands in for the session id in sealed packets. */
const ownId = '00'.repeat(7).concat('01')
const [cookieType, refuseType, noSessionType] = [2, 4, 8]
const long = (value: number) => value.toString(16).padStart(16, '0')

/** The stream of one boot, as raw packets over a real socket (packages/proto/STREAM.md): one request at a time. */
export class StreamDevice {
  #socket = dgram.createSocket('udp4')
  /** The HELLO that opened its session, as hexadecimal digits; empty before. */
  sentHello = ''
  readonly #words: { ip: string; port: number; boot: string; token: string }
  #session: Session | undefined
  #request = 100
  /** It speaks version 3 then, and proves who it is. */
  readonly #key: TpmKey | undefined

  /** The boot script's target. */
  readonly script: string

  private constructor(
    script: string,
    words: { ip: string; port: number; boot: string; token: string },
    key: TpmKey | undefined,
  ) {
    this.script = script
    this.#words = words
    this.#key = key
  }

  /**
   * Starts a boot of this device: requests its script, and takes the address of its stream from it. `from`: its own
   * address, where the machine has several.
   */
  static async boot(
    httpUrl: string,
    mac: string,
    { key, from }: { key?: TpmKey | undefined; from?: string } = {},
  ): Promise<StreamDevice> {
    const script = await textAt(`${httpUrl}/m/${mac}/boot.ipxe`, from)
    const value = (name: string) => script.match(new RegExp(`^set ${name} (\\S+)$`, 'm'))?.[1] ?? ''
    const [ip = '', port = ''] = value('bootfarm_edge').split(':')
    const boot = value('bootfarm_boot').replaceAll('-', '')
    if (!port) throw new Error(`${mac} has been told to start nothing that streams:\n${script}`)
    const words = { ip, port: Number(port), boot, token: value('bootfarm_token') }
    const device = new StreamDevice(script, words, key)
    if (from) await new Promise<void>((resolve) => device.#socket.bind({ address: from }, resolve))
    return device
  }

  /** Fails over to another edge (`IP:PORT`) with the ticket of its newest WELCOME; resolves as `hello` does. */
  async goOnAt(edge: string): Promise<StreamWelcome | string> {
    const [ip = '', port = ''] = edge.split(':')
    Object.assign(this.#words, { ip, port: Number(port) })
    const { ticket = '' } = this.#open.welcome.failover ?? {}
    return this.hello({ age_us: long(1), ticket })
  }

  /**
   * Opens the session, or resumes it; resolves with WELCOME, or with the code that refuses it. While the edge is busy,
   * as after a restart for a device that may still run in another boot, it retries as devices do.
   */
  async hello(shown?: StreamHello['shown']): Promise<StreamWelcome | string> {
    for (;;) {
      const answer = await this.#helloOnce(shown)
      if (answer !== 'busy') return answer
      await new Promise((resolve) => setTimeout(resolve, busyRetryMs))
    }
  }

  async #helloOnce(shown?: StreamHello['shown']): Promise<StreamWelcome | string> {
    const before = this.#session
    const ownSecret = randomBytes(32)
    const secret = before ? Buffer.from(before.welcome.resume_secret, 'hex') : Buffer.from(this.#words.token, 'hex')
    const hello: StreamHello = {
      type: 'hello',
      client_nonce: randomBytes(16).toString('hex'),
      cookie: noCookie,
      ...(this.#key ? { version: 3, codecs: 0 } : {}),
      ...(shown ? { shown } : {}),
      kind: shown ? 'ticket' : before ? 'resumption' : 'token',
      ciphers: ['chacha20_poly1305'],
      packet_size_max: 1472,
      boot_id: this.#words.boot,
      client_public: publicOf(ownSecret).toString('hex'),
      proof: '',
    }
    // Version 3 proves and signs each cookie.
    if (this.#key && hello.kind === 'token') hello.device_key = this.#key.publicKey
    const prove = (cookie: string) => {
      const withCookie = { ...hello, cookie }
      const isSigned = this.#key && hello.kind === 'token' && cookie !== noCookie
      const signed = isSigned && this.#key ? this.#key.signed(withCookie) : withCookie
      return emitStreamPacket({ ...signed, proof: helloProof(secret, signed).toString('hex') })
    }
    const isOurs = (bytes: Buffer) => bytes.toString('hex', 16, 32) === hello.client_nonce
    let answer = await this.#ask(prove(noCookie), isOurs)
    // An edge whose program was exchanged since does not know its cookie, and gives another one.
    while (answer.readUInt8(1) === cookieType) {
      const given = answer
      const cookie = parseStreamPacket(given)
      if (cookie.type !== 'cookie') throw new Error(`${cookie.type} in place of a cookie`)
      const withCookie = prove(cookie.cookie)
      this.sentHello = withCookie.toString('hex')
      answer = await this.#ask(withCookie, (bytes) => isOurs(bytes) && !bytes.equals(given))
    }
    if (answer.readUInt8(1) === refuseType) {
      const refusal = parseStreamPacket(answer)
      return refusal.type === 'refuse' ? refusal.code : refusal.type
    }
    const edgePublic = answer.subarray(32, 64)
    const keys = agreeOnKeys(hello, edgePublic, 'chacha20_poly1305', secret, ownSecret, edgePublic)
    const welcome = parseStreamPacket(openPacket(keys.fromEdge, answer, ownId, welcomeKnownSize))
    if (welcome.type !== 'welcome') throw new Error(`${welcome.type} in place of a welcome`)
    this.#session = { welcome, keys, counter: keys.deviceCounterFirst }
    return welcome
  }

  /** Writes one sector filled with this byte; resolves with the code of the answer. */
  async write(sector: number, byte: number): Promise<string> {
    const payload = Buffer.alloc(512, byte).toString('hex')
    return this.#code({
      type: 'write',
      ...this.#next(),
      ...this.#tag,
      offset: long(sector * 512),
      length: 512,
      attempt: 0,
      fragment_size: 1440,
      index: 0,
      payload,
    })
  }

  async flush(): Promise<string> {
    return this.#code({
      type: 'control',
      ...this.#next(),
      ...this.#tag,
      operation: 'flush',
      offset: noId,
      length: 0,
      attempt: 0,
    })
  }

  /** Returns the bytes of one sector, or the code of an error; `no_session`: the device must send HELLO. */
  async read(sector: number): Promise<Buffer | string> {
    const answer = await this.#inSession({
      type: 'read',
      kind: 'demand',
      fragment_size: 1440,
      ...this.#next(),
      ...this.#tag,
      offset: long(sector * 512),
      length: 512,
      attempt: 0,
      ranges: [],
    })
    if (answer.type === 'data') return Buffer.from(answer.payload, 'hex')
    return answer.type === 'read_error' ? answer.code : answer.type
  }

  /**
   * Reports that it runs, as devices do every few seconds, with the fill of its own write cache in bytes and one
   * finished step; resolves with the answer's type.
   */
  async report(cache = { used: 0, size: 0 }, step?: string): Promise<string> {
    const steps = step ? [{ group: 'initramfs' as const, name: step, start_us: long(1), duration_us: long(1) }] : []
    const { type } = await this.#inSession({
      type: 'report',
      ...this.#next(),
      uptime_us: long(1_000_000),
      order_id: '00'.repeat(16),
      write_cache_used: long(cache.used),
      write_cache_size: long(cache.size),
      steps,
    })
    return type
  }

  /** Asks whether packets of this size arrive, which an edge answers however slow its disk is. */
  async probe(size = 548): Promise<string> {
    const { type } = await this.#inSession({ type: 'probe', ...this.#next(), size })
    return type
  }

  /** From now on its packets come from another port, as behind a router that has dropped its mapping. */
  changePort(): void {
    this.#socket.close()
    this.#socket = dgram.createSocket('udp4')
  }

  close(): void {
    this.#socket.close()
  }

  get #open(): Session {
    if (!this.#session) throw new Error('the session is not open')
    return this.#session
  }

  get #tag(): { version_tag: string } {
    return { version_tag: this.#open.welcome.version_tag }
  }

  #next() {
    this.#request += 1
    return { session_id: ownId, request_id: this.#request }
  }

  async #code(packet: StreamPacket): Promise<string> {
    let answer = await this.#inSession(packet)
    // The edge works on it, and answers when it has ended.
    while (answer.type === 'write_ack' && answer.code === 'not_yet') answer = await this.#inSession(packet, 'later')
    return answer.type === 'write_ack' ? answer.code : answer.type
  }

  async #inSession(packet: StreamPacket, first: 'now' | 'later' = 'now'): Promise<StreamPacket> {
    const session = this.#open
    const bytes = emitStreamPacket(this.#key ? { ...packet, version: 3 } : packet)
    const seal = () => {
      session.counter += 1n
      return sealPacket(session.keys.fromDevice, session.counter, bytes)
    }
    const answer = await this.#ask(seal, (received) => received.readUInt32BE(4) === bytes.readUInt32BE(4), first)
    if (answer.readUInt8(1) === noSessionType) return parseStreamPacket(answer)
    return parseStreamPacket(openPacket(session.keys.fromEdge, answer, ownId))
  }

  /** Retransmits a packet, sealed afresh each time, until an answer `is` the wanted one; `first` now or later. */
  #ask(
    packet: Buffer | (() => Buffer),
    is: (answer: Buffer) => boolean,
    first: 'now' | 'later' = 'now',
  ): Promise<Buffer> {
    const bytes = () => (typeof packet === 'function' ? packet() : packet)
    const send = () => this.#socket.send(bytes(), this.#words.port, this.#words.ip)
    return new Promise((resolve) => {
      const repeating = setInterval(send, repeatMs)
      const take = (received: Buffer) => {
        if (!is(received)) return
        clearInterval(repeating)
        this.#socket.off('message', take)
        resolve(received)
      }
      this.#socket.on('message', take)
      if (first === 'now') send()
    })
  }
}

/** Reads a text from this address of the machine. */
function textAt(url: string, localAddress?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { localAddress }, async (answer) => {
      let text = ''
      for await (const part of answer.setEncoding('utf8')) text += part
      resolve(text)
    })
    request.on('error', reject)
  })
}
