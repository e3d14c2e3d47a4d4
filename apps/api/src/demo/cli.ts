import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { createDb } from '@bootfarm/db'
import { z } from 'zod'
import { readEnvironment } from '../env.ts'
import { setListeners } from '../events/event-bus.ts'
import { createAuth } from '../http/auth/auth.ts'
import { listeners } from '../listeners.ts'
import { systemClock } from '../rules/clock.ts'
import { setSecretKeys } from '../secrets/kept-secrets.ts'
import { loadSecretKeys } from '../secrets/load-secret-keys.ts'
import { demoSite } from './ensure-demo-site.ts'
import { setUpDemo, setUpDemoSite } from './set-up.ts'

const usage = `node apps/api/src/demo/cli.ts set-up --data DIR [--sites FILE]
  Makes what is missing of the demo in the database of DATABASE_URL, writes DIR/demo-sign-in.json, and prints one line of
  JSON {"email","organizationId","farmId","siteId","joinToken"}; joinToken is null once an edge has enrolled.
  FILE has a list of further sites (demo/ensure-demo-site.ts); "sites" of the output has siteId and joinToken of each.`
const sitesMax = 8

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { data: { type: 'string' }, sites: { type: 'string' } },
  })
  if (positionals[0] !== 'set-up' || !values.data) throw new Error(usage)
  const environment = readEnvironment()
  setListeners(listeners)
  setSecretKeys(await loadSecretKeys(environment))
  const db = createDb(environment.DATABASE_URL)
  try {
    const auth = createAuth({ db, webUrl: environment.WEB_URL, secret: environment.BETTER_AUTH_SECRET })
    const context = { db, clock: systemClock }
    const setUp = await setUpDemo(context, auth, values.data)
    const sites = []
    for (const site of readSites(values.sites)) sites.push(await setUpDemoSite(context, setUp, site))
    process.stdout.write(`${JSON.stringify({ ...setUp, sites })}\n`)
  } finally {
    await db.$disconnect()
  }
}

function readSites(file: string | undefined) {
  if (!file) return []
  return z
    .array(demoSite)
    .max(sitesMax)
    .parse(JSON.parse(readFileSync(file, 'utf8')))
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
