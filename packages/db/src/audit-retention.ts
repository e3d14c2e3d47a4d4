import pg from 'pg'

export const auditDaysMin = 30
export const auditDaysMax = 36_500

/**
 * Sets how long entries of the audit log are kept, in all organizations.
 * @param ownerUrl signs in as the owner: the API's role may not
 * @param days null: for ever
 * @returns the previous number of days; null: for ever
 */
export async function setAuditRetention(ownerUrl: string, days: number | null): Promise<number | null> {
  if (days !== null && !(Number.isInteger(days) && days >= auditDaysMin && days <= auditDaysMax))
    throw new Error(`Entries are kept for ${auditDaysMin} to ${auditDaysMax} days, or for ever.`)
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  try {
    await client.query('begin')
    const before = await client.query<{ days: number }>('delete from audit_retention returning days')
    if (days !== null) await client.query('insert into audit_retention (days) values ($1)', [days])
    await client.query('commit')
    return before.rows[0]?.days ?? null
  } finally {
    await client.end()
  }
}
