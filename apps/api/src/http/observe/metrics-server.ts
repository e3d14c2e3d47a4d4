import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'

const connectionsMax = 16
const requestLimitMs = 10_000

interface MetricsAddress {
  host: string
  /** 0: any that is free. */
  port: number
  /** The token that a scraper must send as `Authorization: Bearer`; empty: none. */
  token: string
}

export interface MetricsServer {
  port: number
  close(): Promise<void>
}

/** Serves `/metrics` on a separate address, so that no proxy in front of the API ever shows it. */
export async function startMetricsServer(
  registry: Registry,
  { host, port, token }: MetricsAddress,
): Promise<MetricsServer> {
  const server = createServer((request, reply) => {
    answer(registry, token, { request, reply }).catch(() => refuse(reply, 500))
  })
  server.maxConnections = connectionsMax
  server.requestTimeout = requestLimitMs
  server.headersTimeout = requestLimitMs
  server.timeout = requestLimitMs
  server.listen(port, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function answer(
  registry: Registry,
  token: string,
  { request, reply }: { request: IncomingMessage; reply: ServerResponse },
): Promise<void> {
  if (request.url !== '/metrics') return refuse(reply, 404)
  if (request.method !== 'GET') return refuse(reply, 405)
  if (token && !isSame(request.headers.authorization ?? '', `Bearer ${token}`)) return refuse(reply, 401)
  const text = await registry.metrics()
  reply.writeHead(200, { 'content-type': registry.contentType, 'cache-control': 'no-store' }).end(text)
}

function refuse(reply: ServerResponse, status: number): void {
  if (!reply.headersSent) reply.writeHead(status, status === 401 ? { 'www-authenticate': 'Bearer' } : {})
  reply.end()
}

/** Takes as long for every wrong one. */
function isSame(shown: string, expected: string): boolean {
  const hashOf = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(hashOf(shown), hashOf(expected))
}
