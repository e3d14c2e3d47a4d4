/**
 * The line to run on a site's server. The token precedes the script and is not on a command line, where everybody on
 * that server could see it.
 */
export function installLine(url: string, token: string): string {
  return `{ echo token=${token}; curl -fsSL ${url}/install/edge.sh; } | sudo sh`
}

/** Why other servers cannot reach this address, or should not trust the way to it; null where all is well. */
export function addressWarning(url: string): string | null {
  const { protocol, hostname } = new URL(url)
  if (['localhost', '127.0.0.1', '[::1]'].includes(hostname))
    return `${url} works only on this machine. Set WEB_URL, or EDGE_URL for edges alone, to an address that your servers can reach.`
  if (protocol === 'http:')
    return 'This connection is not encrypted, so anyone on the network path could change the script. Use HTTPS outside a lab.'
  return null
}
