import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'

export interface SeenRequest {
  /** Method and path, without the query. */
  name: string
  query: URLSearchParams
  body: string
  /** Loses the connection while the request waits for its answer. */
  cut: () => void
  /** What the API answers; never, if the request is cut before. */
  answer: Promise<{ status: number; text: string }>
}

/** Stands before the API, sees the requests of an edge or a dashboard, and may hold them or change the answers. */
export class ApiFront {
  /**
   * Returns what the edge gets in place of the API's answer; null: nothing, the connection is lost. For each answer
   * until it is set to null again.
   */
  alter: ((seen: SeenRequest, text: string) => string | null) | null = null
  /** Returns the status with which a request is refused before the API sees it. */
  refuse: ((seen: SeenRequest) => number | null) | null = null
  /** A request goes on to the API once this has resolved. */
  hold: ((seen: SeenRequest) => Promise<unknown>) | null = null
  readonly #requests = new EventEmitter()
  readonly #apiUrl: string
  readonly #server = http.createServer((request, response) => void this.#pass(request, response))
  readonly #open = new Set<SeenRequest>()

  constructor(apiUrl: string) {
    this.#apiUrl = apiUrl
  }

  /** @returns its URL */
  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Resolves with the next request of this name that arrives. */
  async next(name: string): Promise<SeenRequest> {
    for (;;) {
      const [seen] = (await once(this.#requests, 'request')) as [SeenRequest]
      if (seen.name === name) return seen
    }
  }

  /** Calls `see` with each request that arrives from now on. */
  watch(see: (seen: SeenRequest) => void): void {
    this.#requests.on('request', see)
  }

  cutAll(): void {
    for (const seen of this.#open) seen.cut()
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #pass(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const body = await bytesOf(request)
    const { method = '', url = '' } = request
    const cut = () => response.socket?.destroy()
    const { promise: answer, resolve: answered } = Promise.withResolvers<{ status: number; text: string }>()
    const { pathname, searchParams: query } = new URL(url, this.#apiUrl)
    const seen: SeenRequest = { name: `${method} ${pathname}`, query, body: body.toString(), cut, answer }
    this.#open.add(seen)
    response.once('close', () => this.#open.delete(seen))
    this.#requests.emit('request', seen)
    await this.hold?.(seen)
    const refused = this.refuse?.(seen) ?? null
    if (refused !== null) {
      response.writeHead(refused).end()
      return
    }
    const passed = http.request(`${this.#apiUrl}${url}`, { method, headers: request.headers })
    response.once('close', () => passed.destroy())
    passed.once('error', cut)
    passed.once('response', async (from) => {
      const text = await bytesOf(from).then(String, () => null)
      // Whoever asked has gone.
      if (text === null) return cut()
      const status = from.statusCode ?? 502
      answered({ status, text })
      const sent = status === 200 && this.alter ? this.alter(seen, text) : text
      if (sent === null) return cut()
      const { 'content-length': _length, 'transfer-encoding': _coding, ...headers } = from.headers
      response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(sent) }).end(sent)
    })
    passed.end(body)
  }
}

async function bytesOf(message: http.IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  for await (const part of message) parts.push(part as Buffer)
  return Buffer.concat(parts)
}
