import { parseArgs } from 'node:util'
import { createDb } from '@bootfarm/db'
import { createAuth } from '../auth/auth.ts'
import { systemClock } from '../domain/clock.ts'
import { readEnvironment } from '../env.ts'
import { setUpDemo } from './set-up.ts'

const usage = `node apps/api/src/demo/cli.ts set-up --data DIR
  Makes what is missing of the demo in the database of DATABASE_URL, writes DIR/demo-sign-in.json, and prints one line of
  JSON {"email","organizationId","farmId","siteId","joinToken"}; joinToken is null once an edge has enrolled.`

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { data: { type: 'string' } } })
  if (positionals[0] !== 'set-up' || !values.data) throw new Error(usage)
  const environment = readEnvironment()
  const db = createDb(environment.DATABASE_URL)
  try {
    const auth = createAuth({
      db,
      webUrl: environment.WEB_URL,
      secret: environment.BETTER_AUTH_SECRET,
    })
    const setUp = await setUpDemo({ db, clock: systemClock }, auth, values.data)
    process.stdout.write(`${JSON.stringify(setUp)}\n`)
  } finally {
    await db.$disconnect()
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
