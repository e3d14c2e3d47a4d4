import { PrismaPg } from '@prisma/adapter-pg'
import { type Prisma, PrismaClient } from './generated/client.ts'
import { OrganizationClient } from './organization-client.ts'

export type Db = PrismaClient
/** What a service gets inside `db.$transaction(async (transaction) => …)`. */
export type DbTransaction = Omit<Prisma.TransactionClient, '$transaction'>

const connectionsMax = 10
/** Report transactions of an organization wait for each other (BootFeed): a storm queues here, and is refused beyond. */
const transactionOptions = { maxWait: 10_000, timeout: 15_000 }

/** A client with its own pool. It connects at the first query, and again after the database was away. */
export function createDb(url: string): Db {
  const adapter = new PrismaPg({ connectionString: url, max: connectionsMax, Client: OrganizationClient })
  return new PrismaClient({ adapter, transactionOptions })
}
