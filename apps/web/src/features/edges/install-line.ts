/**
 * The line to run on a site's server. The token precedes the script and is not on a command line, where everybody on
 * that server could see it.
 */
export function installLine(url: string, token: string): string {
  // With TLS, a redirect must not lead out of it; without it, the edge refuses unless the risk is named.
  const protocols = url.startsWith('https:') ? "--proto '=https' " : ''
  const insecure = isExposed(url) ? ' -s -- --insecure-uplink' : ''
  return `{ echo token=${token}; curl ${protocols}-fsSL ${url}/install/edge.sh; } | sudo sh${insecure}`
}

const isLoopback = (hostname: string) => ['localhost', '127.0.0.1', '[::1]'].includes(hostname)

function isExposed(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !isLoopback(hostname)
}

/** Why other servers cannot reach this address, or should not trust the way to it; null where all is well. */
export function addressWarning(url: string): string | null {
  if (isLoopback(new URL(url).hostname))
    return `${url} works only on this machine. Set WEB_URL, or EDGE_URL for edges alone, to an address that your servers can reach.`
  if (isExposed(url))
    return 'This connection is not encrypted: anyone on the network path can change the script and read the token. The command accepts this with --insecure-uplink. Use HTTPS outside a lab.'
  return null
}
