import { rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { startEmbeddedPostgres, stopLeftover } from './embedded-postgres.ts'
import { migrate } from './migrate.ts'

const usage = `node packages/db/src/cli.ts COMMAND
  postgres --dir D --port N   run PostgreSQL in the foreground until SIGTERM or SIGINT. When it takes connections, one line of
                              JSON {"pid","port","urlFile"} is printed; D.url holds the URL of the database \`bootfarm\`.
  stop --dir D                end a PostgreSQL whose supervisor was killed
  migrate                     bring the database of DATABASE_URL up to date`

async function runPostgres(dir: string, port: number): Promise<void> {
  const urlFile = `${dir}.url`
  rmSync(urlFile, { force: true })
  // A signal that comes while the server starts stops it as soon as it has.
  const asked = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
  const server = await startEmbeddedPostgres({ dir, port })
  asked.then(() => server.stop())
  try {
    writeFileSync(urlFile, `${server.url('bootfarm')}\n`, { mode: 0o600 })
    process.stdout.write(`${JSON.stringify({ pid: server.pid, port, urlFile })}\n`)
    await server.ended
  } finally {
    rmSync(urlFile, { force: true })
  }
}

async function runMigrate(): Promise<void> {
  const url = process.env.DATABASE_URL
  if (!url) throw new Error('DATABASE_URL is not set.')
  const applied = await migrate(url)
  process.stdout.write(`${JSON.stringify({ applied })}\n`)
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { dir: { type: 'string' }, port: { type: 'string' } },
  })
  const port = Number(values.port)
  if (positionals[0] === 'migrate') await runMigrate()
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
