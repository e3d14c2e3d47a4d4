import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { Announcer } from './announcer.ts'

const reconnectDelayMs = 250
/** A connection that does not answer for so long is tried again. */
const sendLimitMs = 5_000
/** Open pages read changes less often than this: boot/boot-feed.ts in the API. */
const announceEveryMs = 100

export interface NotificationListener {
  /** Calls `wake` at each notification whose payload is `payload`, and after each reconnect, for some may be lost. */
  subscribe(payload: string, wake: () => void): () => void
  /** Not while the connection is lost: subscribers learn of missed changes when it is back. */
  isListening(): boolean
  /**
   * Sends notifications soon, equal ones once: for what was committed before. They wait while the connection is lost. A
   * process that is killed loses those of the last 100 ms.
   */
  announce(payloads: string[]): void
  /** Sends what waits, and ends. */
  close(): Promise<void>
}

/** Listens on one channel over a separate connection, for the lifetime of the process. Resolves once it listens. */
export async function listen(url: string, channel: string): Promise<NotificationListener> {
  const wakers = new Map<string, Set<() => void>>()
  let client: pg.Client | undefined
  let closed = false
  let retry: NodeJS.Timeout | undefined

  const wakeAll = () => {
    for (const set of wakers.values()) callEach(set)
  }

  async function connect(): Promise<void> {
    const next = newClient(url, channel)
    let ended = false
    const lost = () => {
      if (ended) return
      ended = true
      next.end().catch(() => undefined)
      if (client === next) scheduleReconnect()
    }
    next.on('error', lost)
    next.on('end', lost)
    next.on('notification', ({ payload }) => callEach(wakers.get(payload ?? '')))
    await next.connect()
    await next.query(`listen ${pg.escapeIdentifier(channel)}`)
    if (closed) return next.end()
    client = next
    if (ended) scheduleReconnect()
  }

  function scheduleReconnect(): void {
    client = undefined
    if (closed) return
    retry = setTimeout(() => {
      connect().then(wakeAll, scheduleReconnect)
    }, reconnectDelayMs)
  }

  const announcer = announcerOn(channel, () => client)
  await connect()
  return {
    announce: (payloads) => announcer.announce(payloads),
    subscribe(payload, wake) {
      const set = wakers.get(payload) ?? new Set()
      wakers.set(payload, set.add(wake))
      return () => {
        set.delete(wake)
        if (set.size === 0 && wakers.get(payload) === set) wakers.delete(payload)
      }
    },
    isListening: () => client !== undefined,
    async close() {
      await announcer.close()
      closed = true
      clearTimeout(retry)
      const last = client
      client = undefined
      await last?.end()
    },
  }
}

/** Those that are there now. */
function callEach(wakers: Iterable<() => void> = []): void {
  for (const wake of [...wakers]) wake()
}

/**
 * Sends without waiting for the disk: after a crash of PostgreSQL all listeners connect again, and look for changes.
 */
function announcerOn(channel: string, connection: () => pg.Client | undefined): Announcer {
  return new Announcer({
    async send(payloads) {
      const client = connection()
      if (!client) throw new Error('the connection is lost')
      await client.query(
        `select set_config('synchronous_commit', 'off', true), pg_notify($1, payload)
        from unnest($2::text[]) as payload`,
        [channel, payloads],
      )
    },
    pause: (signal) => delay(announceEveryMs, undefined, { signal, ref: false }).catch(() => undefined),
  })
}

const newClient = (url: string, channel: string) =>
  new pg.Client({
    connectionString: url,
    keepAlive: true,
    application_name: `listen ${channel}`,
    query_timeout: sendLimitMs,
  })
