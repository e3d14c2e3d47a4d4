import os from 'node:os'
import { say } from '../lib/progress.mjs'
import { casesNamed } from './cases.mjs'
import { keepResult } from './results.mjs'
import { alertsTable, measureAlerts } from './state/alerts.mjs'
import { deviceTable, measureDevice } from './state/device.mjs'
import { eventsTable, measureEvents } from './state/events.mjs'
import { exploreTable, measureExplore } from './state/explore.mjs'
import { measureLarge } from './state/large.mjs'
import { listsTable } from './state/lists.mjs'
import { queriesTable } from './state/queries.mjs'
import { revertTable } from './state/revert.mjs'
import { searchTable } from './state/search.mjs'

/** In this order. Four share the organization of 10,000 sites, whose planting takes a minute. */
const tables = {
  device: deviceTable,
  revert: revertTable,
  queries: queriesTable,
  lists: listsTable,
  search: searchTable,
  events: eventsTable,
  explore: exploreTable,
  alerts: alertsTable,
}
const largeNames = ['revert', 'queries', 'lists', 'search']

/**
 * Prints how long a change takes until an edge has it, a revert at 10,000 sites, and the queries of a large
 * organization and of its events.
 * @param {{ rounds: number, write: boolean, only: string }} options
 */
export async function benchState({ rounds, write, only }) {
  const names = casesNamed('state', Object.keys(tables), only)
  const loads = [os.loadavg()[0]]
  const measured = []
  for (let round = 0; round < rounds; round++) {
    const one = {}
    if (names.includes('device')) one.device = await measureDevice()
    if (names.includes('events')) one.events = await measureEvents()
    if (names.includes('explore')) one.explore = await measureExplore()
    if (names.includes('alerts')) one.alerts = await measureAlerts()
    const large = names.filter((name) => largeNames.includes(name))
    if (large.length > 0) Object.assign(one, await measureLarge(large))
    measured.push(one)
    loads.push(os.loadavg()[0])
    say(`round ${round + 1} of ${rounds} is measured`)
  }
  const result = {
    date: new Date().toISOString(),
    command: `npm run bench -- state --rounds ${rounds}${only ? ` --only '${only}'` : ''}`,
    machine: { model: os.cpus()[0]?.model ?? '', processors: os.cpus().length, loads },
    measured,
  }
  const text = asMarkdown(result, names)
  process.stdout.write(`\n${text}\n`)
  if (write) keepResult('states-and-queries', result, text)
}

function asMarkdown({ date, command, machine, measured }, names) {
  const parts = names.map((name) => tables[name](measured.map((one) => one[name])))
  return `# Changes of states, and queries of a large organization

${date}, ${machine.processors} processors (${machine.model}), load ${machine.loads.map((load) => load.toFixed(1)).join(', ')} before and after each round. Command:
\`${command}\`

One API process with its PostgreSQL, on loopback.

${parts.join('\n')}`
}
