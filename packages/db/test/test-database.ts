import { randomUUID } from 'node:crypto'
import pg from 'pg'

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the run's PostgreSQL, for the database `bootfarm_template`. */
    templateUrl: string
  }
}

export interface TestDatabase {
  url: string
  drop(): Promise<void>
}

/** A database of one's own, made from the run's migrated one. */
export async function createTestDatabase(templateUrl: string): Promise<TestDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await asAdmin(templateUrl, `create database ${name} template bootfarm_template`)
  const url = new URL(templateUrl)
  url.pathname = `/${name}`
  return {
    url: url.toString(),
    drop: () => asAdmin(templateUrl, `drop database if exists ${name} with (force)`),
  }
}

async function asAdmin(templateUrl: string, sql: string): Promise<void> {
  const url = new URL(templateUrl)
  url.pathname = '/postgres'
  const client = new pg.Client({ connectionString: url.toString() })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}

export { freePort, makeReachableFolder } from './test-postgres.ts'
