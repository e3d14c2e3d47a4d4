import { once } from 'node:events'
import net from 'node:net'

/** A connection from an edge to the API that can be cut, and that can lose the API's acknowledgements of reports. */
export class UplinkRelay {
  #to: net.NetConnectOpts[] = []
  readonly #sockets = new Set<net.Socket>()
  #server: net.Server | null = null
  #connectionCount = 0
  port = 0
  /** The share of acknowledging answers that are lost, 0 to 1. */
  lostShare = 0
  acknowledgementsLost = 0
  acknowledgementsPassed = 0
  /** Bytes of the API that went to the edge. */
  passedBytes = 0
  /** Cuts the connection when so many have. */
  cutAfterBytes = Number.POSITIVE_INFINITY

  /** @param apiUrls take connections in turn, as behind a load balancer */
  constructor(...apiUrls: string[]) {
    this.leadTo(...apiUrls)
  }

  /** Open connections stay where they are. */
  leadTo(...apiUrls: string[]): void {
    this.#to = apiUrls.map((url) => {
      const { hostname: host, port } = new URL(url)
      return { host, port: Number(port) }
    })
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get isCut(): boolean {
    return this.#server === null
  }

  async open(): Promise<void> {
    const server = net.createServer((edge) => this.#pass(edge))
    server.listen({ host: '127.0.0.1', port: this.port })
    await once(server, 'listening')
    this.port = (server.address() as net.AddressInfo).port
    this.#server = server
  }

  async cut(): Promise<void> {
    const server = this.#server
    this.#server = null
    if (!server) return
    const closed = once(server, 'close')
    server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  /** Restores it where it is cut. */
  async heal(): Promise<void> {
    if (this.isCut) await this.open()
  }

  #pass(edge: net.Socket): void {
    const to = this.#to[this.#connectionCount % this.#to.length]
    this.#connectionCount += 1
    if (!to) throw new Error('the uplink leads nowhere')
    const api = net.connect(to)
    const end = () => {
      for (const socket of [edge, api]) socket.destroy()
    }
    for (const socket of [edge, api]) {
      this.#sockets.add(socket)
      socket.once('error', end)
      socket.once('close', () => {
        this.#sockets.delete(socket)
        end()
      })
    }
    edge.pipe(api)
    api.on('data', (bytes: Buffer) => {
      this.passedBytes += bytes.length
      if (this.passedBytes >= this.cutAfterBytes) return void this.cut()
      if (bytes.includes('"ackedSeq"')) {
        // The API has applied the reports; only the edge never learns of it.
        if (Math.random() < this.lostShare) {
          this.acknowledgementsLost += 1
          return end()
        }
        this.acknowledgementsPassed += 1
      }
      if (!edge.write(bytes)) {
        api.pause()
        edge.once('drain', () => api.resume())
      }
    })
  }
}
