import { hash } from 'node:crypto'
import { isIPv6 } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { errorTable } from '../../errors/app-error.ts'

/** Cookies and keys whose callers are remembered. Whoever is forgotten has one request counted by address. */
const rememberedMax = 20_000
/** A network of this length is one customer's: nobody gets more turns by changing the rest of an address. */
const ipv6Groups = 4

/**
 * Says on whose account a request runs before anything was looked up for it: the organization that its cookie or key
 * was found to belong to before, else the caller's address. Nothing depends on it but the order of turns.
 */
export class Accounts {
  readonly #byCredential = new Map<string, string>()

  of(request: FastifyRequest): string {
    const { caller } = request
    if (caller) return callerAccount(caller)
    const credential = credentialOf(request)
    const known = credential === null ? undefined : this.#byCredential.get(credential)
    return known ?? `address ${networkOf(request.ip)}`
  }

  /** Remembers who a request's caller was found to be, and forgets one who is nobody. */
  learn(request: FastifyRequest, status: number): void {
    const credential = credentialOf(request)
    if (credential === null || (!request.caller && status !== errorTable.unauthenticated.status)) return
    // The one that was used last is the last one.
    this.#byCredential.delete(credential)
    if (!request.caller) return
    this.#byCredential.set(credential, callerAccount(request.caller))
    const [oldest] = this.#byCredential.keys()
    if (this.#byCredential.size > rememberedMax && oldest !== undefined) this.#byCredential.delete(oldest)
  }
}

function callerAccount({ organizationId, kind, id }: NonNullable<FastifyRequest['caller']>): string {
  return organizationId === null ? `${kind} ${id}` : `organization ${organizationId}`
}

/** A digest of what shows who calls; null for a caller that shows nothing. */
export function credentialOf({ headers: { authorization = '', cookie = '' } }: FastifyRequest): string | null {
  return authorization === '' && cookie === '' ? null : hash('sha256', `${authorization}\n${cookie}`, 'base64')
}

/** The address, of IPv6 its first 64 bits. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) while (groups.length < ipv6Groups) groups.push('0')
  return groups.slice(0, ipv6Groups).join(':')
}
