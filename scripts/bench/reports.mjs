import { existsSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { inRoot } from '../lib/paths.mjs'
import { secondsOfProcess, secondsOfServer } from '../lib/processor-time.mjs'
import { say } from '../lib/progress.mjs'
import { casesNamed } from './cases.mjs'
import { withControlPlane } from './control-plane.mjs'
import { reportsPerBoot } from './reports/real-boot.mjs'
import { devicesPerSite, Storm } from './reports/storm.mjs'
import { keepResult } from './results.mjs'

/** How the boots of each case end. */
const cases = { ready: { isFailed: false }, failed: { isFailed: true } }
const warmUpMs = 8_000
const measuredMs = 20_000
const goal = { bootsPerMinute: 20_000, processors: 2 }
/** Processor time of API and PostgreSQL that a boot may take for the goal. */
const msPerBootMax = (goal.processors * 60_000) / goal.bootsPerMinute

/**
 * Prints how many boots a minute one organization's edges report while all of its devices boot, and what each boot
 * takes of API and PostgreSQL.
 * @param {{ rounds: number, write: boolean, only: string, before?: string }} options `before`: a checkout of an
 *   earlier release with its packages, which is measured in turns with this one
 */
export async function benchReports({ rounds, write, only, before }) {
  if (before && !existsSync(path.join(before, 'apps/api/src/main.ts')))
    throw new UserError('--before needs a checkout of an earlier release in which `npm install` was run.')
  const names = casesNamed('reports', Object.keys(cases), only)
  const loads = [os.loadavg()[0]]
  const trees = [...(before ? [{ release: 'before', tree: before }] : []), { release: 'this release', tree: inRoot() }]
  const measured = []
  for (let round = 0; round < rounds; round++)
    for (const name of names)
      for (const { release, tree } of trees) {
        const one = { name, release, ...(await withControlPlane('reports', (place) => measure(place, name), { tree })) }
        measured.push(one)
        loads.push(os.loadavg()[0])
        say(`${rowOf([one]).join(' | ')}`)
      }
  const result = {
    date: new Date().toISOString(),
    command: `npm run bench -- reports --rounds ${rounds}${only ? ` --only '${only}'` : ''}${before ? ' --before DIR' : ''}`,
    machine: { model: os.cpus()[0]?.model ?? '', processors: os.cpus().length, loads },
    measured,
  }
  const text = asMarkdown(result)
  process.stdout.write(`\n${text}\n`)
  if (write) keepResult('reports', result, text)
}

async function measure(place, name) {
  const storm = await Storm.planted(place, cases[name])
  try {
    await storm.blow(performance.now() + warmUpMs)
    const used = () => ({
      atMs: performance.now(),
      boots: storm.bootCount,
      api: secondsOfProcess(place.pid),
      postgres: secondsOfServer(place.postgresPid),
    })
    const from = used()
    await storm.blow(performance.now() + measuredMs)
    const until = used()
    const boots = until.boots - from.boots
    const msPerBoot = (field) => ((until[field] - from[field]) * 1_000) / boots
    const minutes = (until.atMs - from.atMs) / 60_000
    return { bootsPerMinute: boots / minutes, apiMs: msPerBoot('api'), postgresMs: msPerBoot('postgres') }
  } finally {
    storm.close()
  }
}

/** Means over the rounds. */
function rowOf(rounds) {
  const mean = (field) => rounds.reduce((sum, one) => sum + one[field], 0) / rounds.length
  const ms = mean('apiMs') + mean('postgresMs')
  return [
    `${rounds[0]?.name}, ${rounds[0]?.release}`,
    Math.round(mean('bootsPerMinute')).toLocaleString('en'),
    mean('apiMs').toFixed(2),
    mean('postgresMs').toFixed(2),
    ms.toFixed(2),
    Math.round((goal.processors * 60_000) / ms).toLocaleString('en'),
  ]
}

function asMarkdown({ date, command, machine, measured }) {
  const groups = Map.groupBy(measured, ({ name, release }) => `${name} ${release}`)
  const rows = [...groups.values()].map(rowOf)
  return `# Reports of a boot storm

${date}, ${machine.processors} processors (${machine.model}), load ${machine.loads.map((load) => load.toFixed(1)).join(', ')} before and after each measurement.
Command: \`${command}\`

One organization, whose sites boot ${devicesPerSite} devices each at once, again and again; one API process with its PostgreSQL, on
loopback. Each boot is reported ${reportsPerBoot} times, and a batch has one report of each of ${devicesPerSite} boots: no report replaces
another one of its batch. ${measuredMs / 1_000} s are measured after ${warmUpMs / 1_000} s. The edges are one process beside it, whose processor time
does not count.

| boots end | boots a minute | API, ms a boot | PostgreSQL, ms a boot | together | boots a minute that ${goal.processors} processors have time for |
| --- | --- | --- | --- | --- | --- |
${rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}

Goal: ${goal.bootsPerMinute.toLocaleString('en')} boots a minute on ${goal.processors} processors, which is at most ${msPerBootMax.toFixed(1)} ms of processor time a boot.
`
}
