import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

/** A proxy as sites have them: CONNECT for TLS, absolute URLs for clear text. It alone resolves names. */
export class HttpProxy {
  readonly #server: http.Server
  readonly #sockets = new Set<Duplex>()
  /** What it was asked for: `CONNECT host:port`, or method and URL. */
  readonly asked: string[] = []
  /** Where names lead. */
  readonly ports = new Map<string, number>()
  /** `USER:PASSWORD`, if it requires one. */
  password: string | undefined
  /** Accepts connections and says nothing. */
  isSilent = false

  private constructor() {
    this.#server = http.createServer((request, response) => {
      this.asked.push(`${request.method} ${request.url}`)
      const url = new URL(request.url ?? '')
      const port = this.ports.get(url.hostname)
      if (!this.#isAllowed(request) || port === undefined) {
        response.writeHead(port === undefined ? 403 : 407).end()
        return
      }
      const { method = 'GET', headers } = request
      const target = { host: '127.0.0.1', port, path: `${url.pathname}${url.search}`, method, headers }
      const passed = http.request(target, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      passed.on('error', () => response.destroy())
      request.pipe(passed)
    })
    this.#server.on('connection', (socket) => this.#keep(socket))
    this.#server.on('connect', (request, socket) => this.#tunnel(request, socket))
  }

  static async open(): Promise<HttpProxy> {
    const proxy = new HttpProxy()
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  #tunnel(request: http.IncomingMessage, socket: Duplex): void {
    this.asked.push(`CONNECT ${request.url}`)
    if (this.isSilent) return
    const port = this.ports.get((request.url ?? '').split(':')[0] ?? '')
    if (!this.#isAllowed(request)) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm="test"\r\n\r\n')
      return
    }
    if (port === undefined) {
      socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n')
      return
    }
    const target = net.connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection established\r\nvia: 1.1 test\r\n\r\n')
      target.pipe(socket)
      socket.pipe(target)
    })
    this.#keep(target)
    for (const [one, other] of [
      [socket, target],
      [target, socket],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
  }

  #isAllowed(request: http.IncomingMessage): boolean {
    if (this.password === undefined) return true
    const expected = `Basic ${Buffer.from(this.password).toString('base64')}`
    return request.headers['proxy-authorization'] === expected
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
  }
}
