import { performance } from 'node:perf_hooks'
import { AppError } from '../../errors/app-error.ts'

/**
 * `upload`: a large body arrives. `large`: it is parsed, and is answered. `request`: a request with a small body, until
 * its answer begins. `call`: one procedure of a batch, or one page of a file.
 */
export type TurnKind = 'upload' | 'large' | 'request' | 'call'

/** In the order in which they start: what ends a request in progress comes first. */
const kinds: readonly TurnKind[] = ['call', 'request', 'large', 'upload']
/**
 * Turns of one account at once. A call is a transaction, and an organization has four of those (`PoolShares`). A large
 * body arrives over a slow line, too; parsing it holds up the loop, so that there is one while others work.
 */
const inProgressMax = {
  alone: { upload: 4, large: 4, request: 8, call: 4 },
  shared: { upload: 4, large: 1, request: 4, call: 4 },
}
/**
 * While others work, a turn starts when the one before has ended, or so long after it started: whatever still runs then
 * waits for the database or a slow line, and not for the loop. That leaves little in progress when another one comes.
 */
const spacingMs = { upload: 100, large: 0, request: 0, call: 20 }
/** And so long after its start also where it has ended: ten large bodies a second leave most of the loop. */
const gapMs = { upload: 100, large: 0, request: 0, call: 0 }
/** Beyond them a request is refused. Calls are limited by the requests that make them. */
const waitingMax = { upload: 16, large: 16, request: 64, call: Number.POSITIVE_INFINITY }
/** Another account's turn makes the process a shared one for so long. */
const sharedForMs = 1_000
/** For so long after its start a turn holds back those who have used more. Most turns are over before. */
const shieldMs = 100
/** Each account that waits gets a turn in this time, whatever it has used. */
const turnAtLeastEveryMs = 100
/** The use of this long ago counts half. */
const halfLifeMs = 1_000
/** Whoever has used less than this waits for nobody: 7 % of the loop, or a page that is opened now and then. */
const freeUseMs = 100
/** Shields end without an event. */
const lookAgainMs = 10
/** An idle account that has used less is like a new one. */
const forgottenBelowMs = 1
const never = Number.NEGATIVE_INFINITY

interface Waiting {
  kind: TurnKind
  sinceMs: number
  start: () => void
}

interface Account {
  name: string
  /** Of the event loop's time, as of `countedAtMs`; recent use counts more. */
  usedMs: number
  countedAtMs: number
  running: Record<TurnKind, number>
  runningCount: number
  /** When the last turn of each kind started. */
  startedAtMs: Record<TurnKind, number>
  waiting: Waiting[]
}

interface TurnOptions {
  /** A monotonic clock. */
  nowMs?: () => number
  /** The time that the event loop was not idle, since any instant. */
  activeMs?: () => number
  /** Called for each turn that starts, with the time that it waited. */
  onStarted?: (kind: TurnKind, waitedMs: number) => void
}

/**
 * Divides the event loop of this process among accounts: organizations, and addresses of callers that are not known
 * yet. Everything that an account asks for takes turns here. A turn may start unless somebody who has used less of the
 * loop has just started one; then it waits until that one ends, and at most 100 ms. So a caller of an organization that
 * asks for little waits for the few turns of others that had started before, however many requests they send; and an
 * organization that is alone has the whole loop.
 *
 * What was used is measured: the loop's active time between two events goes to the accounts whose turns were in
 * progress, by the number of their turns.
 */
export class Turns {
  readonly #accounts = new Map<string, Account>()
  readonly #active = new Set<Account>()
  readonly #queued = new Set<Account>()
  readonly #nowMs: () => number
  readonly #activeMs: () => number
  readonly #onStarted: (kind: TurnKind, waitedMs: number) => void
  #runningCount = 0
  #chargedMs: number
  /** When the account started a turn that did so last, and when any other one did last. */
  #latest = { name: '', startedAtMs: never, othersAtMs: never }
  #timer: NodeJS.Timeout | undefined

  constructor({
    nowMs = () => performance.now(),
    activeMs = () => performance.eventLoopUtilization().active,
    onStarted = () => undefined,
  }: TurnOptions = {}) {
    this.#nowMs = nowMs
    this.#onStarted = onStarted
    this.#activeMs = activeMs
    this.#chargedMs = activeMs()
  }

  /**
   * Resolves when the account's turn has come, to the function that ends it. Throws `rate_limited` if too many of the
   * account wait already.
   */
  async take(name: string, kind: TurnKind): Promise<() => void> {
    const account = this.#accountOf(name)
    const ahead = account.waiting.filter((waiting) => waiting.kind === kind).length
    if (ahead >= waitingMax[kind])
      throw new AppError('rate_limited', {
        internal: `${ahead} of ${name} wait`,
        public: 'Too many requests of your organization or address are in progress. Wait, then try again.',
      })
    const sinceMs = this.#nowMs()
    if (ahead === 0 && this.#mayStart(account, kind, sinceMs)) return this.#start(account, kind, sinceMs)
    const { promise, resolve } = Promise.withResolvers<() => void>()
    account.waiting.push({ kind, sinceMs, start: () => resolve(this.#start(account, kind, sinceMs)) })
    this.#queued.add(account)
    this.#lookAgain()
    return promise
  }

  #mayStart(account: Account, kind: TurnKind, sinceMs: number): boolean {
    const now = this.#nowMs()
    const isShared = this.#isShared(account, now)
    const running = account.running[kind]
    if (running >= inProgressMax[isShared ? 'shared' : 'alone'][kind]) return false
    if (isShared && now - account.startedAtMs[kind] < (running > 0 ? spacingMs : gapMs)[kind]) return false
    if (now - Math.max(sinceMs, newestStart(account)) >= turnAtLeastEveryMs) return true
    const used = usedOf(account, now)
    if (used < freeUseMs) return true
    for (const other of this.#active)
      if (other !== account && now - newestStart(other) < shieldMs && usedOf(other, now) < used) return false
    return true
  }

  #start(account: Account, kind: TurnKind, sinceMs: number): () => void {
    const now = this.#nowMs()
    this.#onStarted(kind, now - sinceMs)
    this.#charge()
    this.#countTurn(account, kind, 1)
    account.startedAtMs[kind] = now
    if (this.#latest.name !== account.name)
      this.#latest = { name: account.name, startedAtMs: now, othersAtMs: this.#latest.startedAtMs }
    this.#latest.startedAtMs = now
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#charge()
      this.#countTurn(account, kind, -1)
      this.#startWaiting()
    }
  }

  #countTurn(account: Account, kind: TurnKind, change: 1 | -1): void {
    account.running[kind] += change
    account.runningCount += change
    this.#runningCount += change
    if (account.runningCount === 0) this.#active.delete(account)
    else this.#active.add(account)
  }

  /** Whoever has used least comes first: a turn that starts here holds back those after it. */
  #startWaiting(): void {
    const now = this.#nowMs()
    const byUse = [...this.#queued].sort((one, other) => usedOf(one, now) - usedOf(other, now))
    for (const account of byUse) {
      for (const kind of kinds)
        for (;;) {
          const next = account.waiting.find((waiting) => waiting.kind === kind)
          if (!next || !this.#mayStart(account, kind, next.sinceMs)) break
          account.waiting.splice(account.waiting.indexOf(next), 1)
          next.start()
        }
      if (account.waiting.length === 0) this.#queued.delete(account)
    }
    this.#lookAgain()
  }

  #lookAgain(): void {
    if (this.#queued.size === 0) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#startWaiting()
    }, lookAgainMs)
  }

  #isShared({ name }: Account, now: number): boolean {
    const { name: latest, startedAtMs, othersAtMs } = this.#latest
    return now - (name === latest ? othersAtMs : startedAtMs) < sharedForMs
  }

  #charge(): void {
    const active = this.#activeMs()
    const spent = active - this.#chargedMs
    this.#chargedMs = active
    const now = this.#nowMs()
    for (const account of this.#active) {
      account.usedMs = usedOf(account, now) + (spent * account.runningCount) / this.#runningCount
      account.countedAtMs = now
    }
  }

  /** The account whose last request is the longest ago is first. */
  #accountOf(name: string): Account {
    const now = this.#nowMs()
    const account = this.#accounts.get(name) ?? {
      name,
      usedMs: 0,
      countedAtMs: now,
      running: { upload: 0, large: 0, request: 0, call: 0 },
      runningCount: 0,
      startedAtMs: { upload: never, large: never, request: never, call: never },
      waiting: [],
    }
    this.#accounts.delete(name)
    this.#accounts.set(name, account)
    this.#forgetIdle(name, now)
    return account
  }

  /** Looks at two for each request, so that none stays for long, and never at the one that asks: it is the last one. */
  #forgetIdle(asking: string, now: number): void {
    let looked = 0
    for (const [name, account] of this.#accounts) {
      looked += 1
      if (looked > 2 || name === asking) return
      const isIdle = account.runningCount === 0 && account.waiting.length === 0
      if (isIdle && usedOf(account, now) < forgottenBelowMs) this.#accounts.delete(name)
    }
  }
}

function newestStart({ startedAtMs: { upload, large, request, call } }: Account): number {
  return Math.max(upload, large, request, call)
}

function usedOf({ usedMs, countedAtMs }: Account, now: number): number {
  return usedMs * 0.5 ** ((now - countedAtMs) / halfLifeMs)
}
