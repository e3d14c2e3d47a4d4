import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

/**
 * Appends the sender to each request's `x-forwarded-for`, as every proxy does: a browser's own claim stays before it,
 * and the API trusts as much of it as TRUSTED_PROXIES allows. Next itself leaves an existing header unchanged.
 */
export function nameCallers(): void {
  subscribe('http.server.request.start', (message) => {
    const { request } = message as { request: IncomingMessage }
    request.headers['x-forwarded-for'] = withPeer(request.headers['x-forwarded-for'], request.socket.remoteAddress)
  })
}

export function withPeer(forwarded: string | string[] | undefined, peer: string | undefined): string {
  // An IPv4 address as a socket of IPv6 shows it.
  const address = (peer ?? 'unknown').replace(/^::ffff:(?=\d+\.)/, '')
  return [forwarded ?? [], address].flat().join(', ')
}
