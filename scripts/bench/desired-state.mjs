import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { ControlPlane } from '../../e2e/lib/control-plane.ts'
import { UserError } from '../lib/fail.mjs'
import { inRoot } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'
import { buildEdge, ensureZig } from '../lib/toolchain.mjs'
import { LongPolls } from './desired-state/long-polls.mjs'
import { MeasuredSite } from './desired-state/measured-site.mjs'
import { asMarkdown } from './desired-state/table.mjs'

const changesPerCase = 50
const longPolls = 200

const cases = [
  { name: 'a device is assigned a vDisk', what: 'assign', polls: 0, processes: 1 },
  { name: 'a device is assigned a vDisk', what: 'assign', polls: longPolls, processes: 1 },
  { name: 'a device is assigned a vDisk', what: 'assign', polls: longPolls, processes: 2 },
  { name: 'a version is registered', what: 'register', polls: longPolls, processes: 1 },
  { name: 'a version is registered', what: 'register', polls: longPolls, processes: 2 },
]

/**
 * Changes something in the API and asks a real edge until what a device gets from it has changed.
 * @param {{ write: boolean, only: string }} options
 */
export async function benchDesiredState({ write, only }) {
  const chosen = cases.filter(({ what }) => what.includes(only))
  if (chosen.length === 0) throw new UserError(`no case is named ${only}; there are assign and register.`)
  await buildEdge(await ensureZig())
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-bench-'))
  const ends = []
  try {
    const plane = await ControlPlane.start(folder)
    ends.unshift(() => plane.stop())
    const secondUrl = await plane.addApi()
    const rows = []
    const loadBefore = os.loadavg()[0]
    for (const one of chosen) {
      say(`Measuring: ${one.name}, ${one.polls} long polls, ${one.processes} API processes`)
      // Changes come to one process, edges wait at the other.
      const uplinkUrl = one.processes === 2 ? secondUrl : plane.apiUrl
      rows.push({ ...one, ...(await measure(plane, { ...one, uplinkUrl, folder })) })
    }
    const result = {
      date: new Date().toISOString(),
      processors: os.cpus().length,
      loadBefore,
      changesPerCase,
      longPolls,
      rows,
    }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keep(result)
  } finally {
    for (const end of ends) await end()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function measure(plane, { what, polls, uplinkUrl, folder }) {
  const site = await MeasuredSite.start(plane, {
    uplinkUrl,
    changes: changesPerCase,
    folder: mkdtempSync(path.join(folder, 'site-')),
  })
  const open = await LongPolls.open(site, { count: polls, url: uplinkUrl })
  try {
    const changes = []
    for (let index = 0; index < changesPerCase; index += 1) {
      changes.push(what === 'assign' ? await site.assign(index) : await site.register(index))
      // Each is measured by itself: all edges have it before the next one.
      if (what === 'register') await open.untilAllHave(index + 1)
    }
    return { changes, others: what === 'register' ? open.timesAfter(changes) : [] }
  } finally {
    open.close()
    await site.stop()
  }
}

function keep(result) {
  const name = `${result.date.slice(0, 10)}-desired-state`
  const directory = inRoot('docs/results')
  mkdirSync(directory, { recursive: true })
  writeFileSync(path.join(directory, `${name}.md`), asMarkdown(result))
  say(`Written to docs/results/${name}.md`)
}
