import { AsyncLocalStorage } from 'node:async_hooks'
import pg from 'pg'
import { StatementNames } from './statement-names.ts'

/** A statement that PostgreSQL has answered. */
export interface EndedQuery {
  /** With placeholders for its parameters, never their values. */
  text: string
  /** When the connection was free for it, in monotonic milliseconds (`performance.now`). */
  beginMs: number
  /** From then until its answer was read: the round trip, and PostgreSQL's work. */
  durationMs: number
  /** Before that: for the answers of those sent before on the same connection. */
  waitMs: number
  isFailed: boolean
}
/** Called in the asynchronous context of who asked. */
export type OnQuery = (ended: EndedQuery) => void

interface OpenTransaction {
  isOpen: boolean
}

/** The organization of the transaction that is about to start, or the transaction inside of which the caller runs. */
const organization = new AsyncLocalStorage<string | OpenTransaction>()
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A transaction that `begin` starts is this organization's. */
export function beginIn<T>(organizationId: string, begin: () => Promise<T>): Promise<T> {
  if (!uuid.test(organizationId)) throw new Error('an organization is known by a UUID')
  return organization.run(organizationId, begin)
}

/** Statements inside the transaction: one that starts beside it belongs to nobody. */
export async function outOfOrganization<T>(work: () => Promise<T>): Promise<T> {
  const transaction = { isOpen: true }
  try {
    // Prisma sends a statement when it is awaited: here, not outside.
    return await organization.run(transaction, async () => await work())
  } finally {
    transaction.isOpen = false
  }
}

/**
 * Throws inside a transaction of an organization. One that waited for a second connection would hold its first: as many
 * of them as the pool, or the organization's share of it, has connections would wait for each other.
 */
export function requireNoTransaction(): void {
  const store = organization.getStore()
  if (typeof store === 'object' && store.isOpen)
    throw new Error('A transaction is open here: use its client, which holds the connection already.')
}

/**
 * A connection that sets the organization with the same message that begins the transaction, and sends that together
 * with the transaction's first statement: a round trip less for each. SET LOCAL ends with the transaction, so that the
 * connection goes back to the pool without it. Were the organization ever lost on the way here, the transaction would
 * see nothing.
 *
 * Its pool sets `pipeline`: Prisma asks for a row's relations at once, and they go out without waiting for each other.
 */
export class OrganizationClient extends pg.Client {
  /** A transaction that nothing was asked of yet. */
  #begin: object | null = null
  #isHeldBack = false
  /** PostgreSQL answers in order: a statement sent meanwhile starts when the previous one ends. */
  #lastEndMs = 0
  readonly #onQuery: OnQuery | undefined

  constructor(config?: pg.ClientConfig & { onQuery?: OnQuery | undefined }) {
    super(config)
    this.#onQuery = config?.onQuery
  }

  // biome-ignore lint/suspicious/noExplicitAny: pg's own overloads, all passed on.
  override query(...parameters: any[]): any {
    const [config, values, callback] = parameters
    if (typeof config?.submit === 'function') return this.#send(parameters)
    // The pool's own, outside of transactions: one at a time.
    if (typeof callback === 'function') return this.#send([named(config), values, heard(callback, this.#watch(config))])
    const text = textOf(config)
    if (text === 'BEGIN') {
      this.#begin = withOrganization(config)
      return Promise.resolve(nothing)
    }
    const begin = this.#begin
    this.#begin = null
    if (begin !== null && (text === 'COMMIT' || text === 'ROLLBACK')) return Promise.resolve(nothing)
    // If it fails, so do the following statements of the same transaction.
    if (begin !== null) this.#ask([begin])
    return this.#ask([named(config), ...parameters.slice(1)])
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above.
  #ask(parameters: any[]): any {
    const ended = this.#watch(parameters[0])
    const result = this.#send(parameters)
    result.then(
      () => ended(false),
      () => ended(true),
    )
    return result
  }

  #watch(config: unknown): (isFailed: boolean) => void {
    const onQuery = this.#onQuery
    if (!onQuery) return () => undefined
    const askedMs = performance.now()
    return AsyncLocalStorage.bind((isFailed: boolean) => {
      const beginMs = Math.max(askedMs, this.#lastEndMs)
      const endMs = performance.now()
      this.#lastEndMs = endMs
      const durationMs = endMs - beginMs
      onQuery({ text: textOf(config), beginMs, durationMs, waitMs: beginMs - askedMs, isFailed })
    })
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above.
  #send(parameters: any[]): any {
    this.#holdBack()
    return Reflect.apply(super.query, this, parameters)
  }

  /** Statements that are requested at once go out in one write: each write wakes a process of the server. */
  #holdBack(): void {
    if (this.#isHeldBack) return
    this.#isHeldBack = true
    const { stream } = this.connection
    stream.cork()
    process.nextTick(() => {
      this.#isHeldBack = false
      stream.uncork()
    })
  }
}

/** PostgreSQL's answer to BEGIN, and to the end of a transaction that has not started. */
const nothing = { command: '', rowCount: null, oid: 0, rows: [], fields: [] }

const names = new StatementNames()

/** Only a statement with values is separate for PostgreSQL: others may contain several. */
function named<T>(config: T): T {
  if (typeof config !== 'object' || config === null) return config
  const { name, values } = config as { name?: string; values?: unknown[] }
  if (name !== undefined || !values?.length) return config
  return { ...config, name: names.nameOf(textOf(config)) }
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

function withOrganization(config: object): object {
  const organizationId = organization.getStore()
  if (typeof organizationId !== 'string') return config
  return { ...config, text: `BEGIN; SET LOCAL bootfarm.organization_id = '${organizationId}'` }
}
