import { Prisma } from '@bootfarm/db'
import type { DbOrTransaction } from './service-context.ts'

const tables = {
  device: Prisma.sql`device`,
  edge: Prisma.sql`edge`,
  farm: Prisma.sql`farm`,
  invitation: Prisma.sql`invitation`,
  schedule: Prisma.sql`schedule`,
  site: Prisma.sql`site`,
  store_job: Prisma.sql`store_job`,
  vdisk: Prisma.sql`vdisk`,
  webhook_endpoint: Prisma.sql`webhook_endpoint`,
}
type LockedTable = keyof typeof tables

/** `no key update` lets others write rows that refer to the locked one; `update` does not. */
const strengths = { update: Prisma.sql`for update`, 'no key update': Prisma.sql`for no key update` }
type Strength = keyof typeof strengths

interface Lock {
  organizationId: string
  id: string
  strength: Strength
  /** `id` if left out. */
  columns?: Prisma.Sql
}

/**
 * Locks one row of an organization until the transaction ends; other transactions that lock it wait.
 * @returns the row's columns, or null if there is no such row
 */
export async function lockRow<Row = { id: string }>(
  db: DbOrTransaction,
  table: LockedTable,
  { organizationId, id, strength, columns = Prisma.sql`id` }: Lock,
): Promise<Row | null> {
  const rows = await db.$queryRaw<Row[]>`select ${columns} from ${tables[table]}
    where organization_id = ${organizationId}::uuid and id = ${id}::uuid ${strengths[strength]}`
  return rows[0] ?? null
}

/** Like `lockRow`, for the row of the organization itself. */
export async function lockOrganization(db: DbOrTransaction, id: string, strength: Strength): Promise<void> {
  await db.$queryRaw`select id from organization where id = ${id}::uuid ${strengths[strength]}`
}
