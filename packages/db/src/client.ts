import { PrismaPg } from '@prisma/adapter-pg'
import { type Prisma, PrismaClient } from './generated/client.ts'

export type Db = PrismaClient
/** What a service gets inside `db.$transaction(async (transaction) => …)`. */
export type DbTransaction = Prisma.TransactionClient

const connectionsMax = 10

/** A client with its own pool. It connects at the first query, and again after the database was away. */
export function createDb(url: string): Db {
  return new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: connectionsMax }) })
}
