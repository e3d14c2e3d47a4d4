import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedMessage {
  headers: IncomingHttpHeaders
  body: string
}

/** Starts a receiver that stores messages and answers as configured, or not before `answer.isHeld` has resolved. */
export async function startReceiver() {
  const received: ReceivedMessage[] = []
  const arrivals = new EventTarget()
  const answer = {
    status: 200,
    body: 'taken',
    headers: {} as Record<string, string>,
    isHeld: null as Promise<void> | null,
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', async () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks).toString('utf8') })
      arrivals.dispatchEvent(new Event('message'))
      await answer.isHeld
      response.writeHead(answer.status, answer.headers).end(answer.body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    received,
    answer,
    /** Resolves when so many messages have come. */
    async until(count: number): Promise<void> {
      while (received.length < count) await once(arrivals, 'message')
    },
    url: `http://127.0.0.1:${port}/in`,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
export type Receiver = Awaited<ReturnType<typeof startReceiver>>
