import { rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { howToSet } from './api-role.ts'
import { setAuditRetention } from './audit-retention.ts'
import { backUp } from './backup.ts'
import { startEmbeddedPostgres, stopLeftover } from './embedded-postgres.ts'
import { migrate } from './migrate.ts'
import { restore } from './restore.ts'

const usage = `node packages/db/src/cli.ts COMMAND
  postgres --dir D --port N   run PostgreSQL in the foreground until SIGTERM or SIGINT. When it takes connections, one line of
                              JSON {"pid","port","urlFile","apiUrlFile"} is printed; D.url holds the URL of the database
                              \`bootfarm\` for its owner, D.api-url the one for the API.
  stop --dir D                end a PostgreSQL whose supervisor was killed
  migrate                     bring the database of DATABASE_OWNER_URL up to date, and make the role that DATABASE_URL
                              signs in with, which is the API's
  backup --to FILE            write all of the database of DATABASE_OWNER_URL, as it is at this moment, to FILE
  backup-keys --to FILE       write the keys that sign desired states alone: small, for after each change of one
  restore --from FILE [--keys FILE]
                              fill the empty database of DATABASE_OWNER_URL with it; edges go on without enrolling again. With the
                              signing keys of a later file they do so too where a key was changed after the backup
  audit-retention --days N    the API removes entries of the audit log that are older; an entry says so
  audit-retention --for-ever  it removes none, as without this command`

async function runPostgres(dir: string, port: number): Promise<void> {
  const urlFile = `${dir}.url`
  const apiUrlFile = `${dir}.api-url`
  const removeFiles = () => {
    for (const file of [urlFile, apiUrlFile]) rmSync(file, { force: true })
  }
  removeFiles()
  // A signal that comes while the server starts stops it as soon as it has.
  const asked = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
  const server = await startEmbeddedPostgres({ dir, port })
  asked.then(() => server.stop())
  try {
    writeFileSync(apiUrlFile, `${server.apiUrl('bootfarm')}\n`, { mode: 0o600 })
    writeFileSync(urlFile, `${server.url('bootfarm')}\n`, { mode: 0o600 })
    process.stdout.write(`${JSON.stringify({ pid: server.pid, port, urlFile, apiUrlFile })}\n`)
    await server.ended
  } finally {
    removeFiles()
  }
}

async function runMigrate(): Promise<void> {
  const { DATABASE_OWNER_URL: ownerUrl, DATABASE_URL: apiUrl } = process.env
  if (!ownerUrl || !apiUrl)
    throw new Error(`${ownerUrl ? 'DATABASE_URL' : 'DATABASE_OWNER_URL'} is not set. ${howToSet}`)
  const onBlocked = (text: string) => process.stderr.write(`${text}\n`)
  const applied = await migrate(ownerUrl, { apiUrl, onBlocked })
  process.stdout.write(`${JSON.stringify({ applied })}\n`)
}

async function keepAudit(days: number | null): Promise<void> {
  const url = process.env.DATABASE_OWNER_URL
  if (!url) throw new Error(`DATABASE_OWNER_URL is not set. ${howToSet}`)
  const before = await setAuditRetention(url, days)
  say({ auditDays: days ?? 'for ever', before: before ?? 'for ever' })
}

function databaseUrls(): { ownerUrl: string; apiUrl: string } {
  const { DATABASE_OWNER_URL: ownerUrl, DATABASE_URL: apiUrl } = process.env
  if (!ownerUrl || !apiUrl) throw new Error(`DATABASE_OWNER_URL and DATABASE_URL have to be set. ${howToSet}`)
  return { ownerUrl, apiUrl }
}

function say(facts: object): void {
  process.stdout.write(`${JSON.stringify(facts)}\n`)
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      dir: { type: 'string' },
      port: { type: 'string' },
      days: { type: 'string' },
      to: { type: 'string' },
      from: { type: 'string' },
      keys: { type: 'string' },
      'for-ever': { type: 'boolean' },
    },
  })
  const port = Number(values.port)
  if (positionals[0] === 'migrate') await runMigrate()
  else if (positionals[0] === 'backup' && values.to) say({ rows: await backUp(databaseUrls().ownerUrl, values.to) })
  else if (positionals[0] === 'backup-keys' && values.to)
    say({ keys: await backUp(databaseUrls().ownerUrl, values.to, 'signing keys') })
  else if (positionals[0] === 'restore' && values.from)
    say({ rows: await restore({ ...databaseUrls(), file: values.from, keysFile: values.keys ?? null }) })
  else if (positionals[0] === 'audit-retention' && (values.days === undefined) === (values['for-ever'] ?? false))
    await keepAudit(values.days === undefined ? null : Number(values.days))
  else if (positionals[0] === 'stop' && values.dir)
    process.stdout.write(`${JSON.stringify({ stopped: await stopLeftover(values.dir) })}\n`)
  else if (positionals[0] === 'postgres' && values.dir && Number.isInteger(port) && port > 0)
    await runPostgres(values.dir, port)
  else throw new Error(usage)
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
