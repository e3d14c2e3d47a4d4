import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openReader } from './api-reader.ts'

interface Seen {
  procedures: string[]
  headers: http.IncomingHttpHeaders
}

/** What the API answers to a batch: of one procedure, or nothing yet. */
type Answer = (procedure: string) => object | null

let seen: Seen[]
let answer: Answer
let server: http.Server

beforeEach(async () => {
  seen = []
  server = http.createServer((request, response) => {
    const procedures = new URL(request.url ?? '', 'http://api').pathname.replace('/api/trpc/', '').split(',')
    seen.push({ procedures, headers: request.headers })
    const answers = procedures.map(answer)
    if (answers.includes(null)) return
    response.writeHead(207, { 'content-type': 'application/json' }).end(JSON.stringify(answers))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.env.API_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterEach(() => {
  delete process.env.API_URL
  server.closeAllConnections()
  server.close()
})

const data = (value: unknown) => ({ result: { data: value } })
const asker = (cookie: string) => ({ cookie, forwardedFor: '192.0.2.7' })
const noLimit = () => new AbortController().signal

test('what a page reads together is one request, with the person’s cookie and address', async () => {
  answer = (procedure) => data({ procedure })
  const { queryClient, trpc } = openReader(asker('session=one'), noLimit())
  await Promise.all([
    queryClient.prefetchQuery(trpc.session.me.queryOptions()),
    queryClient.prefetchQuery(trpc.organization.get.queryOptions({})),
    queryClient.prefetchQuery(trpc.discovered.waitingCount.queryOptions()),
  ])
  expect(seen).toMatchObject([
    {
      procedures: ['session.me', 'organization.get', 'discovered.waitingCount'],
      headers: { cookie: 'session=one', 'x-forwarded-for': '192.0.2.7' },
    },
  ])
  expect(queryClient.getQueryData(trpc.organization.get.queryKey({}))).toEqual({ procedure: 'organization.get' })
})

test('each request reads for its own person: nothing is kept for the next one', async () => {
  answer = () => data(seen.at(-1)?.headers.cookie)
  const readers = ['session=one', 'session=two'].map((cookie) => openReader(asker(cookie), noLimit()))
  const read = await Promise.all(
    readers.map(({ queryClient, trpc }) => queryClient.fetchQuery<unknown>(trpc.session.me.queryOptions() as never)),
  )
  expect(read).toEqual(['session=one', 'session=two'])
  expect(seen.map(({ headers }) => headers.cookie)).toEqual(['session=one', 'session=two'])
})

test('an answer that is refused leaves the others', async () => {
  const refused = { error: { message: 'No.', code: -32_003, data: { code: 'FORBIDDEN', httpStatus: 403 } } }
  answer = (procedure) => (procedure === 'edge.list' ? refused : data([]))
  const { queryClient, trpc } = openReader(asker('session=one'), noLimit())
  await Promise.all([
    queryClient.prefetchQuery(trpc.edge.list.queryOptions({})),
    queryClient.prefetchQuery(trpc.site.list.queryOptions({})),
  ])
  expect(queryClient.getQueryState(trpc.edge.list.queryKey({}))).toMatchObject({ status: 'error', data: undefined })
  expect(queryClient.getQueryState(trpc.site.list.queryKey({}))).toMatchObject({ status: 'success', data: [] })
  expect(seen).toHaveLength(1)
})

test('a limit ends what the API does not answer, and is an error without an answer', async () => {
  answer = () => null
  const limit = new AbortController()
  const { queryClient, trpc } = openReader(asker('session=one'), limit.signal)
  const reading = queryClient.fetchQuery(trpc.session.me.queryOptions())
  await once(server, 'request')
  limit.abort()
  await expect(reading).rejects.toMatchObject({ name: 'TRPCClientError', data: undefined })
})

test('an API that hangs up is an error at once, and is not asked again', async () => {
  let connectionCount = 0
  server.on('connection', (socket) => {
    connectionCount += 1
    socket.destroy()
  })
  const { queryClient, trpc } = openReader(asker('session=one'), noLimit())
  await expect(queryClient.fetchQuery(trpc.session.me.queryOptions())).rejects.toMatchObject({ data: undefined })
  expect(connectionCount).toBe(1)
})
