import { Resolver } from 'node:dns/promises'
import { AppError } from '../errors/app-error.ts'
import type { Address } from './target-guard.ts'

const tryTimeoutMs = 1_500
const triesMax = 2
/** For all tries at all name servers. */
const limitMs = 5_000

/**
 * Returns an address of the host from the name servers of this machine. Not by getaddrinfo, which has no time limit,
 * takes one of the few threads that hash passwords, and knows names that only this machine has. Null for a name that
 * DNS does not know. Throws a sentence for the delivery log.
 */
export async function resolveHost(host: string, nameServers?: string[]): Promise<Address | null> {
  const resolver = new Resolver({ timeout: tryTimeoutMs, tries: triesMax })
  if (nameServers) resolver.setServers(nameServers)
  const timer = setTimeout(() => resolver.cancel(), limitMs)
  try {
    const [v4] = await addressesOf(resolver.resolve4(host))
    if (v4) return { address: v4, family: 4 }
    const [v6] = await addressesOf(resolver.resolve6(host))
    return v6 ? { address: v6, family: 6 } : null
  } finally {
    clearTimeout(timer)
  }
}

/** RFC 1035: the name does not exist (NXDOMAIN), or has no address of this family. */
const absent = new Set(['ENOTFOUND', 'ENODATA'])

async function addressesOf(asked: Promise<string[]>): Promise<string[]> {
  try {
    return await asked
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (absent.has(code)) return []
    throw new AppError('invalid', {
      internal: `DNS: ${code}`,
      public: 'The host name could not be looked up: no name server answered in time.',
    })
  }
}
