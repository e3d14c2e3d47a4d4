import { AsyncLocalStorage } from 'node:async_hooks'
import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { type Prisma, PrismaClient } from './generated/client.ts'
import { type OnQuery, OrganizationClient, requireNoTransaction } from './organization-client.ts'
import { sharePool } from './pool-share.ts'

export type Db = PrismaClient
/** The client inside `db.$transaction(async (transaction) => …)`. */
export type DbTransaction = Omit<Prisma.TransactionClient, '$transaction'>

export const defaultConnectionsMax = 10
/**
 * Report transactions of an organization wait for each other (BootFeed): a storm queues here, and is refused beyond.
 */
const transactionOptions = { maxWait: 10_000, timeout: 15_000 }

/** A client with its own pool. It connects at the first query, and again after the database was away. */
export function createDb(url: string): Db {
  return openDb(url).db
}

/**
 * Like `createDb`, with access to its pool. @param onQuery called for each statement sent; must neither throw nor wait
 */
export function openDb(
  url: string,
  onQuery?: OnQuery,
  connectionsMax = defaultConnectionsMax,
): { db: Db; pool: pg.Pool } {
  const options = {
    connectionString: url,
    max: connectionsMax,
    Client: OrganizationClient,
    onQuery,
    // Statements go out before the answers of those before them have come.
    pipeline: true,
  }
  const pool = new OwnContextPool(options)
  const adapter = new PrismaPg(pool, { disposeExternalPool: true })
  const db = new PrismaClient({ adapter, transactionOptions })
  sharePool(db, connectionsMax)
  pools.set(db, pool)
  return { db, pool }
}

/** By database client. */
const pools = new WeakMap<object, pg.Pool>()

/** A statement that PostgreSQL parses and plans once for each connection. */
interface PreparedStatement {
  name: string
  text: string
  values: unknown[]
}

/**
 * Sends one statement outside of any transaction, without Prisma: for what is sent hundreds of times a second. It sees
 * no organization's rows, unless it calls a function that sees them.
 */
export async function sendPrepared<Row extends pg.QueryResultRow>(
  db: Db,
  statement: PreparedStatement,
): Promise<Row[]> {
  const pool = pools.get(db)
  if (!pool) throw new Error('openDb has not made this client')
  return (await pool.query<Row>(statement)).rows
}

/** A caller that waited for a connection continues in its own context, not in that of the caller that returned it. */
class OwnContextPool extends pg.Pool {
  // biome-ignore lint/suspicious/noExplicitAny: pg's own overloads, all passed on.
  override connect(callback?: any): any {
    requireNoTransaction()
    return callback ? super.connect(AsyncLocalStorage.bind(callback)) : super.connect()
  }
}
