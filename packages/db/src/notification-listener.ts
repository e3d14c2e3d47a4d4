import pg from 'pg'

const reconnectDelayMs = 250

export interface NotificationListener {
  /** Calls `wake` at each notification whose payload is `payload`, and after each reconnect, for some may be lost. */
  subscribe(payload: string, wake: () => void): () => void
  /** Not while the connection is lost: subscribers learn of missed changes when it is back. */
  isListening(): boolean
  close(): Promise<void>
}

/** Listens on one channel over a separate connection, for the lifetime of the process. Resolves once it listens. */
export async function listen(url: string, channel: string): Promise<NotificationListener> {
  const wakers = new Map<string, Set<() => void>>()
  let client: pg.Client | undefined
  let closed = false
  let retry: NodeJS.Timeout | undefined

  const wakeAll = () => {
    for (const set of wakers.values()) for (const wake of [...set]) wake()
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
    next.on('notification', ({ payload }) => {
      for (const wake of [...(wakers.get(payload ?? '') ?? [])]) wake()
    })
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

  await connect()
  return {
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
      closed = true
      clearTimeout(retry)
      const last = client
      client = undefined
      await last?.end()
    },
  }
}

const newClient = (url: string, channel: string) =>
  new pg.Client({ connectionString: url, keepAlive: true, application_name: `listen ${channel}` })
