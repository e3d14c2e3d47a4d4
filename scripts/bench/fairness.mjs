import { spawn } from 'node:child_process'
import http from 'node:http'
import os from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { testOrigin } from '../../apps/api/test/test-constants.ts'
import { UserError } from '../lib/fail.mjs'
import { inRoot } from '../lib/paths.mjs'
import { secondsOfProcess } from '../lib/processor-time.mjs'
import { say } from '../lib/progress.mjs'
import { casesNamed, quantile } from './cases.mjs'
import { withControlPlane } from './control-plane.mjs'
import { attacks } from './fairness/attacks.mjs'
import { makeTenant } from './fairness/tenants.mjs'
import { keepResult } from './results.mjs'

const measuredMs = 10_000
/** Until an attack is at its full strength. */
const warmUpMs = 3_000
const pauseMs = 30
const reportEveryMs = 500
const pingEveryMs = 2_000
const goals = { ratio: 1.5, atLeastMs: 50, reportMs: 1_000 }

/**
 * Attacks the API from one organization, and prints how long the requests of another one take with each attack and
 * without.
 * @param {{ rounds: number, write: boolean, only: string }} options
 */
export async function benchFairness({ rounds, write, only }) {
  const names = casesNamed('fairness', Object.keys(attacks), only)
  const loadBefore = os.loadavg()[0]
  const measured = []
  for (let round = 0; round < rounds; round++)
    for (const name of names) {
      const one = { name, ...(await measure(name)) }
      measured.push(one)
      say(
        `${name}: p95 ${one.alone.p95.toFixed(0)} ms alone, ${one.attacked.p95.toFixed(0)} under attack; longest report ${one.attacked.reportMax.toFixed(0)} ms; ${one.apiCores.toFixed(2)} cores of the API, ${one.attackerCores.toFixed(2)} of the attacker; ${JSON.stringify(one.counts)}`,
      )
    }
  const result = {
    date: new Date().toISOString(),
    command: `npm run bench -- fairness --rounds ${rounds}${only ? ` --only '${only}'` : ''}`,
    machine: { model: os.cpus()[0]?.model ?? '', processors: os.cpus().length, loadBefore },
    measured,
  }
  const text = asMarkdown(result, names)
  process.stdout.write(`\n${text}\n`)
  if (write) keepResult('fairness', result, text)
}

/** Of a new installation, so that no attack leaves anything to the next one. */
function measure(name) {
  return withControlPlane('fairness', async (place) => {
    const ending = []
    try {
      const victim = await makeTenant(place, 'victim')
      const attacker = await makeTenant(place, 'attacker')
      const receiver = await startReceiver(place.url, victim)
      ending.push(receiver.stop)
      await victim.edge.report(100)
      // Once everything is compiled and cached.
      await work(place.url, victim, receiver, 2_000)
      const alone = await work(place.url, victim, receiver, measuredMs)
      const attack = startAttacker({
        name,
        url: place.url,
        origin: testOrigin,
        tenant: { ...attacker, edge: attacker.edge.place },
      })
      ending.push(attack.kill)
      await delay(warmUpMs)
      const before = secondsOfProcess(place.pid)
      const attacked = await work(place.url, victim, receiver, measuredMs)
      const apiCores = (secondsOfProcess(place.pid) - before) / (measuredMs / 1000)
      return { alone, attacked, apiCores, ...(await attack.stop()) }
    } finally {
      for (const end of ending.reverse()) await end()
    }
  })
}

/** A server that takes the webhook's messages, and says when one has come. */
async function startReceiver(url, tenant) {
  let onMessage = () => {}
  const server = http.createServer((request, response) => {
    request.resume()
    request.once('end', () => {
      response.end()
      onMessage()
    })
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const headers = { authorization: `Bearer ${tenant.apiKey}`, 'content-type': 'application/json' }
  const body = JSON.stringify({
    name: 'Hook',
    url: `http://127.0.0.1:${server.address().port}/`,
    events: ['boot.failed'],
  })
  const answer = await fetch(`${url}/api/v1/webhooks`, { method: 'POST', headers, body })
  if (!answer.ok) throw new Error(`the webhook was refused: ${await answer.text()}`)
  const location = answer.headers.get('location')
  return {
    /** @returns ms from the request for a message until it came */
    async ping() {
      const begin = performance.now()
      const came = new Promise((resolve) => {
        onMessage = resolve
      })
      const asked = await fetch(`${url}${location}/ping`, { method: 'POST', headers, body: '{}' })
      if (!asked.ok) throw new Error(`the test message was refused: ${await asked.text()}`)
      await came
      return performance.now() - begin
    },
    stop: () => new Promise((resolve) => server.close(resolve)),
  }
}

/**
 * A person who reads one page after the other, an edge that reports a boot every half second, and a webhook that is
 * tested every two seconds.
 */
async function work(url, tenant, receiver, forMs) {
  const until = performance.now() + forMs
  const pages = ['session', 'devices?limit=50', 'boots?limit=50', `vdisks/${tenant.vdiskId}`]
  const read = async (number) => {
    const answer = await fetch(`${url}/api/v1/${pages[number % pages.length]}`, { headers: { cookie: tenant.owner } })
    await answer.text()
    if (!answer.ok) throw new Error(`${pages[number % pages.length]} answered ${answer.status}`)
  }
  const report = async () => {
    const status = await tenant.edge.report(1)
    if (status !== 200) throw new Error(`a report answered ${status}`)
  }
  const [reads, reports, messages] = await Promise.all([
    repeat({ until, everyMs: pauseMs }, read),
    repeat({ until, everyMs: reportEveryMs }, report),
    repeat({ until, everyMs: pingEveryMs }, () => receiver.ping()),
  ])
  return {
    reads: reads.length,
    p50: quantile(reads, 0.5),
    p95: quantile(reads, 0.95),
    max: Math.max(...reads),
    reportMax: Math.max(...reports),
    messageMax: Math.max(...messages),
  }
}

/** @returns {Promise<number[]>} how many ms each call took; the first one begins at once, and none overlap */
async function repeat({ until, everyMs }, once) {
  const took = []
  while (performance.now() < until) {
    const begin = performance.now()
    await once(took.length)
    took.push(performance.now() - begin)
    await delay(everyMs)
  }
  return took
}

/** In a process of its own that everything else comes before. */
function startAttacker(what) {
  const child = spawn('nice', ['-n', '19', process.execPath, inRoot('scripts/bench/fairness/attacker.mjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (text) => {
    output += text
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  child.stdin.write(`${JSON.stringify(what)}\n`)
  const startedAtMs = performance.now()
  return {
    /** @returns {Promise<{ counts: Record<string, number>, attackerCores: number }>} */
    async stop() {
      const ranSeconds = (performance.now() - startedAtMs) / 1000
      child.stdin.end()
      await ended
      if (output === '') throw new UserError(`the attacker of ${what.name} ended without a result.`)
      const { counts, seconds } = JSON.parse(output)
      return { counts, attackerCores: seconds / ranSeconds }
    },
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

function asMarkdown({ date, command, machine, measured }, names) {
  const rows = names.map((name) =>
    rowOf(
      name,
      measured.filter((one) => one.name === name),
    ),
  )
  const missed = rows.filter(({ isReached }) => !isReached).map(({ name }) => name)
  return `# One organization attacks, another one works

${date}, ${machine.processors} processors (${machine.model}), load ${machine.loadBefore.toFixed(2)} before. Command:
\`${command}\`

One API process with its PostgreSQL, and two organizations of 2,000 devices. Of one of them, a person reads a page
every ${pauseMs} ms, an edge reports a boot every ${reportEveryMs} ms, and a webhook is tested every ${pingEveryMs / 1000} s, for ${measuredMs / 1000} s alone and for as
long while somebody of the other one attacks. The attacker is a process of the lowest priority on the same machine.
Medians of all rounds; the longest report and message are those of all rounds.

| attack | requests/s of the attacker | cores of the attacker | cores of the API | p95 alone, ms | p95 attacked | longest read | longest report | longest message |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
${rows.map(({ text }) => text).join('\n')}

${names.map((name) => `- ${name}: ${attacks[name].what}`).join('\n')}

Goals: p95 under attack at most ${goals.ratio} times that alone, or ${goals.atLeastMs} ms; each report accepted within ${goals.reportMs / 1000} s. ${missed.length === 0 ? '**Reached.**' : `**Missed** by: ${missed.join(', ')}.`}
`
}

function rowOf(name, runs) {
  const median = (of) => quantile(runs.map(of), 0.5)
  const longest = (of) => Math.max(...runs.map(of))
  const asked = ({ counts }) =>
    Object.values(counts).reduce((sum, one) => sum + one, 0) / ((measuredMs + warmUpMs) / 1000)
  const [alone, attacked] = [median((run) => run.alone.p95), median((run) => run.attacked.p95)]
  const reportMax = longest((run) => run.attacked.reportMax)
  const cells = [
    name,
    median(asked).toFixed(0),
    median((run) => run.attackerCores).toFixed(2),
    median((run) => run.apiCores).toFixed(2),
    alone.toFixed(1),
    attacked.toFixed(1),
    longest((run) => run.attacked.max).toFixed(0),
    reportMax.toFixed(0),
    longest((run) => run.attacked.messageMax).toFixed(0),
  ]
  const isReached = attacked <= Math.max(goals.ratio * alone, goals.atLeastMs) && reportMax <= goals.reportMs
  return { name, isReached, text: `| ${cells.join(' | ')} |` }
}
