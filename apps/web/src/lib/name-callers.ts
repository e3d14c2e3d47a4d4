import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'

/**
 * Writes behind each request's `x-forwarded-for` who has sent it to this server, as every proxy does: what a browser
 * says there stays before it, and the API believes as much of it as TRUSTED_PROXIES says. Next itself leaves a header
 * that is there as it is.
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
