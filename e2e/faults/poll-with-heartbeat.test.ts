import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

interface SeenRequest {
  /** Method and path, without the query. */
  name: string
  body: string
  /** Loses the connection while the request waits for its answer. */
  cut: () => void
}

/** Stands before the API and sees an edge's requests; it can be an API of the release before. */
class ApiFront {
  isEarlier = false
  readonly #requests = new EventEmitter()
  readonly #apiUrl: string
  readonly #server = http.createServer((request, response) => void this.#pass(request, response))
  readonly #open = new Set<SeenRequest>()

  constructor(apiUrl: string) {
    this.#apiUrl = apiUrl
  }

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

  cutAll(): void {
    for (const seen of this.#open) seen.cut()
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async #pass(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = Buffer.concat(parts)
    const { method = '', url = '' } = request
    const cut = () => response.socket?.destroy()
    const seen = { name: `${method} ${url.split('?')[0]}`, body: body.toString(), cut }
    this.#open.add(seen)
    response.once('close', () => this.#open.delete(seen))
    this.#requests.emit('request', seen)
    if (this.isEarlier && seen.name === 'POST /edge/v1/state') {
      response.writeHead(404).end()
      return
    }
    const passed = http.request(`${this.#apiUrl}${url}`, { method, headers: request.headers })
    response.once('close', () => passed.destroy())
    passed.once('error', cut)
    passed.once('response', async (answer) => {
      const answered: Buffer[] = []
      for await (const part of answer) answered.push(part as Buffer)
      const text = Buffer.concat(answered)
      const isCut = this.isEarlier && seen.name === 'POST /edge/v1/heartbeat' && answer.statusCode === 200
      const sent = isCut ? Buffer.from(JSON.stringify({ state: JSON.parse(text.toString()).state })) : text
      const { 'content-length': _length, 'transfer-encoding': _coding, ...headers } = answer.headers
      response.writeHead(answer.statusCode ?? 502, { ...headers, 'content-length': sent.length }).end(sent)
    })
    passed.end(body)
  }
}

const scratch = scratchDirectory()
const poll = 'POST /edge/v1/state'
const separatePoll = 'GET /edge/v1/state'
const heartbeat = 'POST /edge/v1/heartbeat'
let plane: ControlPlane
let front: ApiFront
let edge: ControlledEdge

beforeAll(async () => {
  plane = await ControlPlane.start(scratch.path)
  front = new ApiFront(plane.apiUrl)
  const url = await front.open()
  const { databaseUrl, webUrl } = plane
  edge = await ControlledEdge.start({ databaseUrl, webUrl, apiUrl: url }, scratch.path)
})
afterAll(async () => {
  await edge?.stop()
  front?.close()
  await plane?.stop()
  scratch.remove()
})

const counterOf = async () => (await edge.stateInForce())?.counter ?? 0

/** Resolves when the edge acts on a change that the dashboard makes now. */
async function changeArrives(name: string): Promise<void> {
  const before = await counterOf()
  const { siteId } = edge.tenant
  const { revision } = await edge.api.query<{ revision: number }>('site.get', { siteId })
  await edge.api.mutate('site.update', { siteId, revision, name })
  while ((await counterOf()) <= before) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Each change ends a poll: the next one is such a poll once the edge has heard of them. */
async function carriedPoll(name: string): Promise<SeenRequest> {
  let isCarried = false
  const carried = front.next(poll).then((seen) => {
    isCarried = true
    return seen
  })
  for (let count = 1; !isCarried; count++) await changeArrives(`${name} ${count}`)
  return carried
}

test('the poll of an edge carries its heartbeat, and a change ends it', async () => {
  // An edge polls before it has any state, too.
  await changeArrives('Named')
  const { body } = await carriedPoll('First')
  expect(JSON.parse(body)).toMatchObject({ devicesBooting: 0, state: { incarnation: 1 } })
  while (!(await edge.query<{ online: boolean }>()).online) await new Promise((resolve) => setTimeout(resolve, 20))
  const following = front.next(poll)
  await changeArrives('Renamed')
  await following
})

test('an edge whose poll is cut sends a heartbeat by itself, and polls with it again', async () => {
  const alone = front.next(heartbeat)
  front.cutAll()
  await alone
  await carriedPoll('Second')
})

test('an edge is served by an API of the release before, and by this one again', async () => {
  front.isEarlier = true
  const separate = front.next(separatePoll)
  front.cutAll()
  await separate
  await front.next(heartbeat)
  await changeArrives('Renamed again')
  front.isEarlier = false
  await carriedPoll('Third')
})
