import type pg from 'pg'
import { z } from 'zod'
import { BackupError, readBackup, signingKeyTable } from './backup.ts'

const keyRow = z.object({ organization_id: z.string(), public_key: z.string() })

/**
 * Brings the keys that sign desired states to where a file of keys has them, so that edges which have seen a change
 * after the backup believe the restored control plane. Each organization's keys of the backup have to be among the
 * file's, or, where the backup is the newer one, the other way round: then they stay. Throws a BackupError otherwise,
 * and for a file that holds no keys.
 * @returns how many keys were taken
 */
export async function restoreSigningKeys(client: pg.Client, file: string): Promise<number> {
  const given = await readKeys(file)
  const { rows } = await client.query<{ organization_id: string; public_key: string }>(
    `select organization_id::text, public_key from ${signingKeyTable}`,
  )
  const there = Map.groupBy(rows, (row) => row.organization_id)
  const wanted: string[] = []
  for (const [organizationId, keys] of Map.groupBy(given, ({ key }) => key.organization_id)) {
    // A key that was created after the backup is not in it.
    const known = new Set(there.get(organizationId)?.map((row) => row.public_key))
    const inFile = new Set(keys.map(({ key }) => key.public_key))
    if (known.size === 0 || [...inFile].every((key) => known.has(key))) continue
    if (![...known].every((key) => inFile.has(key)))
      throw new BackupError(
        `${file} does not go with this backup: the signing keys of the organization ${organizationId} do not continue those of the backup.`,
      )
    wanted.push(...keys.map(({ text }) => text))
  }
  const taken = await client.query(
    `insert into ${signingKeyTable} select * from jsonb_populate_recordset(null::${signingKeyTable}, $1)
    on conflict (organization_id, id) do update set seed = excluded.seed`,
    [`[${wanted.join(',')}]`],
  )
  return taken.rowCount ?? 0
}

async function readKeys(file: string): Promise<{ key: z.infer<typeof keyRow>; text: string }[]> {
  const keys: { key: z.infer<typeof keyRow>; text: string }[] = []
  let table = ''
  for await (const line of readBackup(file)) {
    if (line.kind === 'table') table = line.table
    else if (line.kind === 'row' && table === signingKeyTable)
      keys.push({ key: keyRow.parse(JSON.parse(line.text)), text: line.text })
  }
  if (keys.length === 0) throw new BackupError(`${file} holds no signing keys.`)
  return keys
}
