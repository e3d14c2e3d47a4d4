import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { seedDefaults } from '../../packages/db/src/seed.ts'
import { UserError } from '../lib/fail.mjs'
import { freePorts } from '../lib/free-ports.mjs'
import { inRoot, root } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { must } from '../lib/run.mjs'
import { Load } from './api/load.mjs'
import { asMarkdown } from './api/table.mjs'
import { WatchedProcess } from './watched-process.mjs'

const readsPerSecond = 50
const bootsPerSecond = 200
const warmUpSeconds = 15
const secondsPerRound = 30
const startLimitMs = 60_000
const databaseProgram = inRoot('packages/db/src/cli.ts')

/**
 * Seeds a database of its own, starts the API as in production and asks it as many people and edges would.
 * @param {{ rounds: number, write: boolean }} options each round measures 30 s
 */
export async function benchApi({ rounds, write }) {
  // The account that PostgreSQL runs as has to reach it.
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  chmodSync(scratch, 0o755)
  const processes = []
  const start = async (args, env, ready) => {
    const started = new WatchedProcess({ command: process.execPath, args, env: { ...process.env, ...env } })
    processes.unshift(started)
    await ready(started)
    return started
  }
  try {
    const [pgPort, apiPort] = await freePorts(2)
    const directory = path.join(scratch, 'postgres')
    await start([databaseProgram, 'postgres', '--dir', directory, '--port', String(pgPort)], {}, (started) =>
      started.waitFor(/"apiUrlFile"/, startLimitMs),
    )
    const read = (name) => readFileSync(path.join(scratch, name), 'utf8').trim()
    const urls = { DATABASE_OWNER_URL: read('postgres.url'), DATABASE_URL: read('postgres.api-url') }
    const seeded = await fill(urls)
    const secret = randomBytes(24).toString('hex')
    const api = await start(
      [inRoot('apps/api/src/main.ts')],
      {
        ...{ NODE_ENV: 'production', LOG_LEVEL: 'warn', DATABASE_URL: urls.DATABASE_URL },
        ...{ API_PORT: String(apiPort), BETTER_AUTH_SECRET: secret, WEB_URL: 'http://localhost:3000' },
      },
      () => answering(`http://127.0.0.1:${apiPort}/readyz`),
    )
    const load = new Load({ apiPort, secret, size: seedDefaults, seed: 20261121 })
    say(`Warming up for ${warmUpSeconds} s`)
    await load.run({ seconds: warmUpSeconds, readsPerSecond, bootsPerSecond })
    load.times.clear()
    load.failures.clear()
    const seconds = rounds * secondsPerRound
    say(`Measuring for ${seconds} s`)
    const loadBefore = os.loadavg()[0]
    await load.run({ seconds, readsPerSecond, bootsPerSecond })
    load.close()
    const result = {
      ...{
        date: new Date().toISOString(),
        processors: os.cpus().length,
        loadBefore,
        loadAfter: os.loadavg()[0],
      },
      ...{ seconds, readsPerSecond, bootsPerSecond, size: seedDefaults, seeded },
      ...{ apiMemoryMiB: memoryMiB(api.pid), failures: Object.fromEntries(load.failures) },
      procedures: [...load.times].map(([name, times]) => summary(name, times)).sort(byName),
      reads: summary(
        'all reads',
        [...load.times].flatMap(([name, times]) => (name.startsWith('POST') ? [] : times)),
      ),
    }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keep(result)
  } finally {
    for (const started of processes) await started.stop()
    await must(
      'Stopping PostgreSQL',
      process.execPath,
      [databaseProgram, 'stop', '--dir', path.join(scratch, 'postgres')],
      {
        cwd: root,
      },
    ).catch(() => undefined)
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function fill(env) {
  await must('Making the tables', process.execPath, [databaseProgram, 'migrate'], { cwd: root, env })
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
