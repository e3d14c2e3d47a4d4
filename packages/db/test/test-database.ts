import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { closeDatabase } from '../src/api-role.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the run's PostgreSQL for the database `bootfarm_template`, as its owner. */
    templateUrl: string
    /** The same for the API's role. */
    templateApiUrl: string
  }
}

/** SQLSTATE of PostgreSQL: object_in_use. */
const databaseInUse = '55006'

export interface TestDatabase {
  /** The owner's: sees the rows of all organizations. */
  url: string
  /** The API's, as in an installation: row-level security binds it. */
  apiUrl: string
  drop(): Promise<void>
}

/**
 * A database of one's own, made from the run's migrated one: its files copied, not each page written to the log first.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const database = await createEmptyDatabase('template bootfarm_template strategy file_copy')
  await withClient(database.url, (client) => closeDatabase(client, new URL(database.apiUrl).username))
  return database
}

/** One without any tables. */
export async function createEmptyDatabase(from = ''): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  const neighbour = urlFor(inject('templateUrl'), 'postgres')
  await withClient(neighbour, (client) => client.query(`create database ${name} ${from}`))
  return {
    url: urlFor(inject('templateUrl'), name),
    apiUrl: urlFor(inject('templateApiUrl'), name),
    drop: () => withClient(neighbour, (client) => dropDatabase(client, name)),
  }
}

/**
 * PostgreSQL waits up to five seconds for connections that are being closed. Forced at once, it would send each of them
 * an error that nobody listens for any more: a pool has ended before its connections have.
 */
async function dropDatabase(client: pg.Client, name: string): Promise<void> {
  try {
    await client.query(`drop database if exists ${name}`)
  } catch (error) {
    if (!(error instanceof pg.DatabaseError && error.code === databaseInUse)) throw error
    await client.query(`drop database if exists ${name} with (force)`)
  }
}

function urlFor(templateUrl: string, database: string): string {
  const url = new URL(templateUrl)
  url.pathname = `/${database}`
  return url.toString()
}

async function withClient(url: string, use: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await use(client)
  } finally {
    await client.end()
  }
}

export { freePort, makeReachableFolder } from './test-postgres.ts'
