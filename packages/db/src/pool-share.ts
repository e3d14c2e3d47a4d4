/** The part of a pool's connections that transactions of one organization may hold at the same time. */
const shareOfPool = 0.4
const waitMsMax = 10_000
/** The code of Prisma's error for a transaction that got no connection in time. */
const noConnectionCode = 'P2028'

/**
 * Divides a pool among organizations: what one of them requests beyond its share waits here, in its order, and takes no
 * connection from the others.
 */
export class PoolShares {
  readonly #max: number
  readonly #running = new Map<string, number>()
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(connectionsMax: number) {
    this.#max = Math.max(1, Math.floor(connectionsMax * shareOfPool))
  }

  /** Throws an error with the code P2028 if the organization's share stays taken for so long. */
  async within<T>(organizationId: string, work: () => Promise<T>, maxWaitMs = waitMsMax): Promise<T> {
    await this.#take(organizationId, maxWaitMs)
    try {
      return await work()
    } finally {
      this.#free(organizationId)
    }
  }

  #take(organizationId: string, maxWaitMs: number): Promise<void> | undefined {
    const running = this.#running.get(organizationId) ?? 0
    if (running < this.#max) {
      this.#running.set(organizationId, running + 1)
      return
    }
    return new Promise((resolve, reject) => {
      const waiting = this.#waiting.get(organizationId) ?? []
      this.#waiting.set(organizationId, waiting)
      const start = () => {
        clearTimeout(timer)
        resolve()
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(start), 1)
        if (waiting.length === 0) this.#waiting.delete(organizationId)
        const message = `no connection within ${maxWaitMs} ms: ${this.#max} transactions of the organization run`
        reject(Object.assign(new Error(message), { code: noConnectionCode }))
      }, maxWaitMs)
      waiting.push(start)
    })
  }

  /** Hands the place to the next one that waits. */
  #free(organizationId: string): void {
    const waiting = this.#waiting.get(organizationId)
    const next = waiting?.shift()
    if (waiting?.length === 0) this.#waiting.delete(organizationId)
    if (next) {
      next()
      return
    }
    const left = (this.#running.get(organizationId) ?? 1) - 1
    if (left === 0) this.#running.delete(organizationId)
    else this.#running.set(organizationId, left)
  }
}

/** By database client. */
const shares = new WeakMap<object, PoolShares>()

export function sharePool(db: object, connectionsMax: number): void {
  shares.set(db, new PoolShares(connectionsMax))
}

/** Undefined for a client that `openDb` did not make. */
export function sharesOf(db: object): PoolShares | undefined {
  return shares.get(db)
}
