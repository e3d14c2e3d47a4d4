import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { isSeeded, seedDefaults } from '../../packages/db/src/seed.ts'
import { UserError } from '../lib/fail.mjs'
import { freePorts } from '../lib/free-ports.mjs'
import { inRoot, root } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { must } from '../lib/run.mjs'
import { Load } from './api/load.mjs'
import { postgresSeconds, processorSeconds } from './api/processor-time.mjs'
import { reads } from './api/reads.mjs'
import { asMarkdown } from './api/table.mjs'
import { WatchedProcess } from './watched-process.mjs'

const readsPerSecond = 50
const bootsPerSecond = 200
const warmUpSeconds = 60
const secondsPerRound = 30
/** Of each kind, alone and one after the other, once what is kept between requests is there. */
const costedRequests = 40
const uncostedRequests = 10
const startLimitMs = 60_000
const databaseProgram = inRoot('packages/db/src/cli.ts')

/**
 * Seeds a database, starts the API as in production and asks it as many people and edges would.
 * @param {{ rounds: number, write: boolean, database: string }} options each round measures 30 s; `database` is a directory that is kept
 *   and, where it has been seeded before, taken as it is
 */
export async function benchApi({ rounds, write, database }) {
  // The account that PostgreSQL runs as has to reach it.
  const scratch = database
    ? path.dirname(path.resolve(database))
    : mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  const directory = database ? path.resolve(database) : path.join(scratch, 'postgres')
  if (!database) chmodSync(scratch, 0o755)
  const processes = []
  const start = async (args, env, ready) => {
    const started = new WatchedProcess({ command: process.execPath, args, env: { ...process.env, ...env } })
    processes.unshift(started)
    return { ...(await ready(started)), pid: started.pid }
  }
  try {
    const [pgPort, apiPort] = await freePorts(2)
    const { match } = await start(
      [databaseProgram, 'postgres', '--dir', directory, '--port', String(pgPort)],
      {},
      (started) => started.waitFor(/"pid":(\d+).*"apiUrlFile"/, startLimitMs),
    )
    const read = (ending) => readFileSync(`${directory}${ending}`, 'utf8').trim()
    const urls = { DATABASE_OWNER_URL: read('.url'), DATABASE_URL: read('.api-url') }
    const seeded = await fill(urls)
    const secret = randomBytes(24).toString('hex')
    const api = await start(
      [inRoot('apps/api/src/main.ts')],
      {
        NODE_ENV: 'production',
        LOG_LEVEL: 'warn',
        DATABASE_URL: urls.DATABASE_URL,
        API_PORT: String(apiPort),
        BETTER_AUTH_SECRET: secret,
        WEB_URL: 'http://localhost:3000',
      },
      () => answering(`http://127.0.0.1:${apiPort}/readyz`),
    )
    const used = () => ({
      atMs: performance.now(),
      api: processorSeconds(api.pid),
      postgres: postgresSeconds(Number(match[1])),
      generator: processorSeconds(process.pid),
    })
    const load = new Load({ apiPort, secret, size: seedDefaults, seed: 20261121 })
    say(`Warming up for ${warmUpSeconds} s`)
    await load.run({ seconds: warmUpSeconds, readsPerSecond, bootsPerSecond })
    load.times.clear()
    load.failures.clear()
    const seconds = rounds * secondsPerRound
    say(`Measuring for ${seconds} s`)
    const loadBefore = os.loadavg()[0]
    const before = used()
    await load.run({ seconds, readsPerSecond, bootsPerSecond })
    const spent = between(before, used())
    const loadAfter = os.loadavg()[0]
    const times = new Map(load.times)
    const failures = Object.fromEntries(load.failures)
    say('Measuring what each request costs')
    const costs = await costsOf(load, used)
    load.close()
    const readTimes = [...times].flatMap(([name, some]) => (name.startsWith('POST') ? [] : some))
    const result = {
      date: new Date().toISOString(),
      processors: os.cpus().length,
      loadBefore,
      loadAfter,
      seconds,
      readsPerSecond,
      bootsPerSecond,
      size: seedDefaults,
      seeded,
      apiMemoryMiB: memoryMiB(api.pid),
      failures,
      spent,
      costs,
      bootsTakenPerSecond: (load.bootsPerBatch * (times.get(load.reportsName)?.length ?? 0)) / spent.seconds,
      procedures: [...times].map(([name, some]) => summary(name, some)).sort(byName),
      reads: summary('all reads', readTimes),
    }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keep(result)
  } finally {
    for (const started of processes) await started.stop()
    await must('Stopping PostgreSQL', process.execPath, [databaseProgram, 'stop', '--dir', directory], {
      cwd: root,
    }).catch(() => undefined)
    if (!database) rmSync(scratch, { recursive: true, force: true })
  }
}

function between(before, after) {
  const share = (name) => after[name] - before[name]
  return {
    seconds: share('atMs') / 1000,
    api: share('api'),
    postgres: share('postgres'),
    generator: share('generator'),
  }
}

/** Milliseconds of processor time of one request of each kind, which the work beside it changes little. */
async function costsOf(load, used) {
  const kinds = [
    ...reads.map((request) => ({ name: request.name, ask: (count) => load.readInTurn(request, count) })),
    { name: load.reportsName, ask: (count) => load.reportInTurn(count) },
  ]
  const costs = []
  for (const { name, ask } of kinds) {
    await ask(uncostedRequests)
    const before = used()
    await ask(costedRequests)
    const spent = between(before, used())
    const each = (seconds) => (seconds * 1000) / costedRequests
    costs.push({ name, apiMs: each(spent.api), postgresMs: each(spent.postgres) })
  }
  return costs
}

/** @returns what was done, and how long it took; nothing for a database that was filled before */
async function fill(env) {
  await must('Making the tables', process.execPath, [databaseProgram, 'migrate'], { cwd: root, env })
  if (await isSeeded(env.DATABASE_OWNER_URL)) return []
  say('Seeding; some minutes')
  const output = await must('Seeding', process.execPath, [databaseProgram, 'seed'], { cwd: root, env })
  say(output.trim().replaceAll('\n', '; '))
  return output.trim().split('\n')
}

async function answering(url) {
  const deadline = performance.now() + startLimitMs
  for (;;) {
    const answer = await fetch(url).catch(() => null)
    if (answer?.ok) return
    if (performance.now() > deadline) throw new UserError(`the API does not answer at ${url}.`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

function summary(name, times) {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
  return {
    name,
    count: sorted.length,
    p50Ms: at(0.5),
    p95Ms: at(0.95),
    p99Ms: at(0.99),
    maxMs: sorted.at(-1),
  }
}

const byName = (a, b) => (a.name < b.name ? -1 : 1)

function memoryMiB(pid) {
  const [, kib] = readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmHWM:\s+(\d+)/)
  return Math.round(Number(kib) / 1024)
}

function keep(result) {
  const name = `${result.date.slice(0, 10)}-api`
  const directory = inRoot('docs/results')
  mkdirSync(directory, { recursive: true })
  writeFileSync(path.join(directory, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`)
  writeFileSync(path.join(directory, `${name}.md`), asMarkdown(result))
  say(`Written to docs/results/${name}.md and .json`)
}
