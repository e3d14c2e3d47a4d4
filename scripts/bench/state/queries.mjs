import { deviceSort } from '../../../apps/api/src/device/schema.ts'
import { setListeners } from '../../../apps/api/src/events/event-bus.ts'
import { listeners } from '../../../apps/api/src/listeners.ts'
import { keepAllSchedules } from '../../../apps/api/src/schedule/keep-schedules.ts'
import { createDb } from '../../../packages/db/src/index.ts'
import { secondsOfProcess, secondsOfServer } from '../../lib/processor-time.mjs'
import { quantile } from '../cases.mjs'
import { bootCount, deviceCount, organizationCount, siteCount } from './plant-large.mjs'

const timesEach = 40
const warmUpCount = 3
/** Of the deep page. */
const rowsBefore = 80_000
const goalMs = 100

/**
 * Reads what a large organization's pages read, one request after the other, as its owner.
 * @returns {Promise<Record<string, { ms: number[], bytes: number }>>} by name
 */
export async function measureQueries(place, tenant) {
  const { farmId, vdiskId, versionIds } = tenant
  const measured = {}
  const paths = {
    'GET /vdisks/{id}': `vdisks/${vdiskId}`,
    'GET /farms/{id}/overview': `farms/${farmId}/overview`,
    'GET /versions/{id}/preview (revert)': `versions/${versionIds[1]}/preview?action=revert`,
    'GET /versions/{id}/preview (delete)': `versions/${versionIds[2]}/preview?action=delete`,
    // 5,000 devices each: those that booted last, without and with their boots.
    'GET /storm?minutes=1': 'storm?minutes=1',
    'GET /storm?minutes=1440': 'storm?minutes=1440',
    ...(await pathsOfDevices(place, tenant)),
  }
  for (const [name, path] of Object.entries(paths)) {
    const url = `${place.url}/api/v1/${path}`
    measured[name] = await repeat(
      () => read(url, tenant.cookie),
      () => secondsOf(place),
    )
  }
  measured['the keeper of schedules'] = await measureKeeper(place)
  return measured
}

/** Each order of the list of devices, both ways: the first page, and one far behind it. */
async function pathsOfDevices({ db }, { organizationId }) {
  const paths = {}
  for (const name of Object.keys(deviceSort.fields))
    for (const sort of [name, `-${name}`]) {
      const direction = sort.startsWith('-') ? 'desc nulls last' : 'asc nulls first'
      const column = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
      const [last] = await db.$queryRawUnsafe(
        `select ${column} as value, id::text from device where organization_id = $1::uuid
          order by ${column} ${direction}, id ${direction.split(' ')[0]} offset ${rowsBefore} limit 1`,
        organizationId,
      )
      const cursor = Buffer.from(JSON.stringify([last.value, last.id, sort])).toString('base64url')
      paths[`GET /devices?sort=${sort}, first page`] = `devices?limit=50&sort=${sort}`
      paths[`GET /devices?sort=${sort}, deep page`] = `devices?limit=50&sort=${sort}&cursor=${cursor}`
    }
  return paths
}

/** In this process, by the API's role. */
async function measureKeeper({ apiUrl, clock }) {
  setListeners(listeners)
  const db = createDb(apiUrl)
  try {
    return await repeat(async () => {
      await keepAllSchedules({ db, clock: clock.read })
      return 0
    })
  } finally {
    await db.$disconnect()
  }
}

const secondsOf = ({ pid, postgresPid }) => secondsOfProcess(pid) + secondsOfServer(postgresPid)

/** @param {() => number} seconds of processor time that whoever answers has used */
export async function repeat(once, seconds = () => 0) {
  const measured = { ms: [], bytes: 0, processorMs: 0 }
  for (let count = 0; count < warmUpCount; count++) await once()
  const secondsBefore = seconds()
  for (let count = 0; count < timesEach; count++) {
    const begin = performance.now()
    measured.bytes = await once()
    measured.ms.push(performance.now() - begin)
  }
  measured.processorMs = ((seconds() - secondsBefore) * 1_000) / timesEach
  return measured
}

export async function read(url, cookie) {
  const answer = await fetch(url, { headers: { cookie } })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${text}`)
  return Buffer.byteLength(text)
}

/** @param {Awaited<ReturnType<typeof measureQueries>>[]} rounds */
export function queriesTable(rounds) {
  const rows = Object.keys(rounds[0] ?? {}).map((name) => {
    const ms = rounds.flatMap((round) => round[name].ms)
    const p95 = quantile(ms, 0.95)
    const kilobytes = Math.ceil((rounds[0]?.[name].bytes ?? 0) / 1000)
    const processorMs = rounds.reduce((sum, round) => sum + round[name].processorMs, 0) / rounds.length
    const times = [quantile(ms, 0.5), p95, Math.max(...ms)].map((one) => one.toFixed(0))
    const cells = [name, ...times, processorMs ? processorMs.toFixed(0) : '', kilobytes || '']
    return { name, isReached: p95 <= goalMs, text: `| ${cells.join(' | ')} |` }
  })
  const missed = rows.filter(({ isReached }) => !isReached).map(({ name }) => name)
  const numbers = [siteCount, deviceCount, bootCount].map((count) => count.toLocaleString('en'))
  return `## Queries

One organization with ${numbers[0]} sites, ${numbers[1]} devices and ${numbers[2]} boots of 30 days, beside ${organizationCount.toLocaleString('en')} organizations
without anything. Each request is sent ${timesEach} times, one after the other, by an owner. A deep page begins after ${rowsBefore.toLocaleString('en')} devices.

The processor time is that of API and PostgreSQL for one request.

| request | p50 ms | p95 ms | longest | processor ms | kB |
| --- | --- | --- | --- | --- | --- |
${rows.map(({ text }) => text).join('\n')}

Goal: p95 of each at most ${goalMs} ms: ${missed.length === 0 ? '**reached**' : `**missed** by ${missed.join('; ')}`}.
`
}
