import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'

/** A statement that PostgreSQL has answered. */
export interface EndedQuery {
  /** With its parameters' places, never their values. */
  text: string
  /** With the wait for the one before on the same connection. */
  durationMs: number
  isFailed: boolean
}
export type OnQuery = (ended: EndedQuery) => void

/** Of the transaction that is about to begin. */
const organization = new AsyncLocalStorage<string | null>()
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A transaction that `begin` starts is this organization's. */
export function beginIn<T>(organizationId: string, begin: () => Promise<T>): Promise<T> {
  if (!uuid.test(organizationId)) throw new Error('an organization is known by a UUID')
  return organization.run(organizationId, begin)
}

/** What runs inside the transaction: one that it begins beside is nobody's. */
export function outOfOrganization<T>(work: () => Promise<T>): Promise<T> {
  return organization.run(null, work)
}

/**
 * A connection that sets the organization with the same message that begins the transaction: one round trip less for each. SET LOCAL ends with
 * the transaction, so that the connection goes back to the pool without it. Were the organization ever lost on the way here, the
 * transaction would see nothing.
 *
 * Queries wait here for the one before: Prisma asks for a row's relations at once, and pg is to refuse that from version 9 on.
 */
export class OrganizationClient extends pg.Client {
  #last: Promise<unknown> = Promise.resolve()
  readonly #onQuery: OnQuery | undefined

  constructor(config?: pg.ClientConfig & { onQuery?: OnQuery | undefined }) {
    super(config)
    this.#onQuery = config?.onQuery
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg's own overloads, all passed on.
  override query(...parameters: any[]): any {
    const [config, , callback] = parameters
    if (typeof config?.submit === 'function') return this.#send(parameters)
    const begin = performance.now()
    const ended = (isFailed: boolean) =>
      this.#onQuery?.({ text: textOf(config), durationMs: performance.now() - begin, isFailed })
    // The pool's own, outside of transactions: one at a time.
    if (typeof callback === 'function') return this.#send([config, parameters[1], heard(callback, ended)])
    const run = () => this.#send([withOrganization(config), ...parameters.slice(1)])
    const result = this.#last.then(run)
    this.#last = result.then(
      () => ended(false),
      () => ended(true),
    )
    return result
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above.
  #send(parameters: any[]): any {
    return Reflect.apply(super.query, this, parameters)
  }
}

type Callback = (error: unknown, ...rest: unknown[]) => void

function heard(callback: Callback, ended: (isFailed: boolean) => void): Callback {
  return (error, ...rest) => {
    ended(Boolean(error))
    callback(error, ...rest)
  }
}

function textOf(config: unknown): string {
  if (typeof config === 'string') return config
  const text = typeof config === 'object' && config !== null && 'text' in config ? config.text : ''
  return typeof text === 'string' ? text : ''
}

function withOrganization<T>(config: T): T {
  const organizationId = organization.getStore()
  const isBegin = typeof config === 'object' && config !== null && 'text' in config && config.text === 'BEGIN'
  if (!isBegin || !organizationId) return config
  return { ...config, text: `BEGIN; SET LOCAL bootfarm.organization_id = '${organizationId}'` }
}
