import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Certificate } from './certificates.ts'

/** Ends TLS in front of an API, as a customer's load balancer does. */
export class TlsFront {
  readonly #server: https.Server
  /** Paths of the requests that arrived. */
  readonly paths: string[] = []
  /** Answers instead of the API: a redirect to this URL. */
  redirectTo: string | undefined

  private constructor(apiUrl: string, certificate: Certificate) {
    this.#server = https.createServer(certificate, (request, response) => {
      this.paths.push(request.url ?? '')
      if (this.redirectTo !== undefined) {
        response.writeHead(308, { location: this.redirectTo, 'content-length': 0 }).end()
        return
      }
      const { method = 'GET', headers } = request
      const passed = http.request(new URL(request.url ?? '/', apiUrl), { method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      passed.on('error', () => response.destroy())
      response.on('close', () => passed.destroy())
      request.pipe(passed)
    })
  }

  static async open(apiUrl: string, certificate: Certificate, port = 0): Promise<TlsFront> {
    const front = new TlsFront(apiUrl, certificate)
    front.#server.listen(port, '127.0.0.1')
    await once(front.#server, 'listening')
    return front
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}
