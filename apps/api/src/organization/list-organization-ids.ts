import type { Db } from '@bootfarm/db'

/** For jobs, which do their work in one organization after the other. */
export async function listOrganizationIds(db: Db): Promise<string[]> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organization_ids() as id`
  return rows.map(({ id }) => id)
}
