import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startEmbeddedPostgres } from '../../packages/db/src/embedded-postgres.ts'
import { publicKeyOf, signText, uplinkSignedText } from '../../packages/proto/src/uplink-signature.ts'
import { UserError } from '../lib/fail.mjs'
import { freePorts } from '../lib/free-ports.mjs'
import { inRoot } from '../lib/paths.mjs'
import { secondsOfProcess, secondsOfServer } from '../lib/processor-time.mjs'
import { say } from '../lib/progress.mjs'
import { keepResult } from './results.mjs'
import { WatchedProcess } from './watched-process.mjs'

const edgeCounts = { whole: 1000, quick: 50 }
const retryMs = 1_000
const devicesPerSite = 10
/** Of a poll without a heartbeat. */
const pollMs = 25_000
/** Of one with a heartbeat, at most. */
const combinedMsMax = 28_000
/** Where the API names no other time: that of releases before `nextMs`. */
const heartbeatMs = 5_000
/** Two long polls of each edge. */
const measuredMs = 2 * combinedMsMax
/** Without any edge, once the API has started. */
const emptyMs = 20_000
const settleMs = 10_000
const limitMs = 120_000
/** For the first state of each edge, in addition. */
const limitPerEdgeMs = 60
const goalCores = 1
const extrapolatedTo = 10_000

/**
 * Prints the processor time of API and PostgreSQL for edges at as many sites where nothing happens.
 * @param {{ rounds: number, write: boolean, quick: boolean, before?: string, edges?: number }} options
 *   `before`: a checkout of an earlier release with its packages, which is measured in turns with this one
 */
export async function benchIdle({ rounds, write, quick, before, edges }) {
  if (before && !existsSync(path.join(before, 'apps/api/src/main.ts')))
    throw new UserError('--before needs a checkout of an earlier release in which `npm install` was run.')
  const edgeCount = quick ? edgeCounts.quick : (edges ?? edgeCounts.whole)
  const loadBefore = os.loadavg()[0]
  const trees = [...(before ? [{ name: 'before', tree: before }] : []), { name: 'this release', tree: inRoot() }]
  const measured = []
  for (let round = 0; round < rounds; round++)
    for (const { name, tree } of trees) {
      const one = { name, ...(await measure(tree, edgeCount)) }
      measured.push(one)
      say(`${name}: API ${one.api.toFixed(3)}, PostgreSQL ${one.postgres.toFixed(3)} cores for ${edgeCount} edges`)
    }
  const result = {
    date: new Date().toISOString(),
    command: `npm run bench -- idle --rounds ${rounds}${quick ? ' --quick' : ''}${edges ? ` --edges ${edges}` : ''}${before ? ' --before DIR' : ''}`,
    machine: { model: os.cpus()[0]?.model ?? '', processors: os.cpus().length, loadBefore },
    edgeCount,
    measured,
  }
  process.stdout.write(`\n${asMarkdown(result)}\n`)
  if (write) keepResult('idle', result, asMarkdown(result))
}

/** @returns cores that API and PostgreSQL take, and the requests that the edges made a second */
async function measure(tree, edgeCount) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-idle-'))
  chmodSync(scratch, 0o755)
  const [databasePort, apiPort] = await freePorts(2)
  const postgres = await startEmbeddedPostgres({ dir: path.join(scratch, 'cluster'), port: databasePort })
  let api
  const stopping = new AbortController()
  try {
    const [ownerUrl, apiUrl] = [postgres.url('bootfarm'), postgres.apiUrl('bootfarm')]
    const { migrate } = await import(path.join(tree, 'packages/db/src/migrate.ts'))
    await migrate(ownerUrl, { apiUrl })
    const edges = await plant(ownerUrl, edgeCount)
    api = startApi(tree, apiUrl, apiPort)
    await api.waitFor(/listening/i, limitMs)
    await delay(settleMs)
    const empty = await coresDuring(emptyMs, { api, postgres })
    const counts = { polls: 0, heartbeats: 0, failures: 0, states: 0, lastFailure: '' }
    const agent = new http.Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY })
    const load = edges.map((edge, index) =>
      runEdge({ edge, counts, agent, port: apiPort, stopping, delayMs: (index / edgeCount) * combinedMsMax }),
    )
    const deadline = performance.now() + limitMs + edgeCount * limitPerEdgeMs
    while (counts.states < edgeCount) {
      if (performance.now() > deadline)
        throw new UserError(
          `only ${counts.states} edges have got a state; ${counts.failures} requests failed. ${counts.lastFailure}`,
        )
      await delay(500)
    }
    // Until each of them waits in a poll that began without news.
    await delay(combinedMsMax)
    counts.failures = 0
    const from = { ...counts }
    const used = await coresDuring(measuredMs, { api, postgres })
    if (counts.failures > 0) throw new UserError(`${counts.failures} requests failed: ${counts.lastFailure}`)
    stopping.abort()
    await Promise.all(load)
    return {
      api: used.api,
      postgres: used.postgres,
      empty: empty.api + empty.postgres,
      polls: (counts.polls - from.polls) / used.seconds,
      heartbeats: (counts.heartbeats - from.heartbeats) / used.seconds,
    }
  } finally {
    stopping.abort()
    await api?.stop()
    await postgres.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function coresDuring(ms, { api, postgres }) {
  const from = { api: secondsOfProcess(api.pid), postgres: secondsOfServer(postgres.pid) }
  const startedAt = performance.now()
  await delay(ms)
  const seconds = (performance.now() - startedAt) / 1000
  return {
    seconds,
    api: (secondsOfProcess(api.pid) - from.api) / seconds,
    postgres: (secondsOfServer(postgres.pid) - from.postgres) / seconds,
  }
}

function startApi(tree, databaseUrl, port) {
  return new WatchedProcess({
    command: process.execPath,
    args: [path.join(tree, 'apps/api/src/main.ts')],
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      API_PORT: String(port),
      BETTER_AUTH_SECRET: randomBytes(32).toString('hex'),
      LOG_LEVEL: 'info',
    },
  })
}

/** @returns an organization with one edge at each of its sites, by SQL: enrolling them is not what is measured */
async function plant(ownerUrl, edgeCount) {
  const pg = createRequire(inRoot('packages/db/package.json'))('pg')
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  const edges = Array.from({ length: edgeCount }, (_, index) => {
    const seed = createHash('sha256').update(`idle edge ${index}`).digest()
    return { id: idOf(3, index), seed, publicKey: publicKeyOf(seed) }
  })
  const seed = randomBytes(32)
  const [organization, farm, vdisk] = [idOf(0, 0), idOf(1, 0), idOf(2, 0)]
  const sites = `generate_series(0, ${edgeCount - 1}) as site (number)`
  const uuid = (kind, number) => `('00000000-0000-4000-800${kind}-' || lpad(to_hex(${number}), 12, '0'))::uuid`
  for (const [text, values] of [
    [`insert into organization (id, slug, name) values ($1, 'idle', 'Idle')`, [organization]],
    [`insert into boot_feed (organization_id) values ($1)`, [organization]],
    [
      `insert into signing_key (organization_id, id, public_key, seed) values ($1, $2, $3, $4)`,
      [organization, idOf(6, 0), publicKeyOf(seed), seed],
    ],
    [`insert into farm (organization_id, id, name) values ($1, $2, 'Farm')`, [organization, farm]],
    [
      `insert into vdisk (organization_id, id, farm_id, name) values ($1, $2, $3, 'Linux')`,
      [organization, vdisk, farm],
    ],
    [
      `insert into vdisk_version (organization_id, id, vdisk_id, number, size_bytes, disk_path, kernel_path, initrd_path, command_line)
      values ($1, $2, $3, 1, 1048576, 'a/1/disk.raw', 'a/1/kernel', 'a/1/initrd', 'quiet')`,
      [organization, idOf(7, 0), vdisk],
    ],
    [
      `insert into site (organization_id, id, farm_id, name, time_zone) select $1, ${uuid(4, 'number')}, $2, 'Site ' || number, 'UTC' from ${sites}`,
      [organization, farm],
    ],
    [
      `insert into collection (organization_id, id, site_id, name, vdisk_id)
      select $1, ${uuid(5, 'number')}, ${uuid(4, 'number')}, 'All', $2 from ${sites}`,
      [organization, vdisk],
    ],
    [
      `insert into device (organization_id, id, site_id, collection_id, name, mac)
      select $1, gen_random_uuid(), ${uuid(4, 'number')}, ${uuid(5, 'number')}, 'pc-' || device,
        regexp_replace('02' || lpad(to_hex(number * ${devicesPerSite} + device), 10, '0'), '(..)(?!$)', '\\1:', 'g')
      from ${sites}, generate_series(0, ${devicesPerSite - 1}) as device`,
      [organization],
    ],
    [
      `insert into edge (organization_id, id, site_id, name, public_key, arch, agent_version, enrolled_at)
      select $1, ${uuid(3, 'number')}, ${uuid(4, 'number')}, 'edge-' || number, ($2::text[])[number + 1], 'x86_64', '0.1.0', now()
      from ${sites}`,
      [organization, edges.map((edge) => edge.publicKey)],
    ],
    ['analyze', []],
  ])
    await client.query(text, values)
  await client.end()
  return edges
}

/** The ids of the planted rows, by kind. */
function idOf(kind, number) {
  return `00000000-0000-4000-800${kind}-${number.toString(16).padStart(12, '0')}`
}

/** Polls without a pause and sends heartbeats as an edge does, until it is stopped. */
async function runEdge({ edge, counts, agent, port, stopping: { signal }, delayMs }) {
  let counter = 0
  const send = async (method, target, body = '') => {
    counter += 1
    const facts = { method, path: target, edgeId: edge.id, bootEpoch: 1, counter, body: Buffer.from(body) }
    const headers = {
      'content-length': String(facts.body.length),
      'bootfarm-edge': edge.id,
      'bootfarm-epoch': '1',
      'bootfarm-counter': String(counter),
      'bootfarm-signature': signText(uplinkSignedText(facts), edge.seed),
      'bootfarm-uplink': '5',
    }
    const answer = await requestOf({ agent, port, method, path: target, headers, signal }, facts.body)
    if (answer.status >= 300) throw new Error(`${answer.status}: ${answer.text}`)
    return answer
  }
  const repeat = async (work) => {
    while (!signal.aborted)
      await work().catch(async (error) => {
        if (signal.aborted) return
        counts.failures += 1
        counts.lastFailure = String(error)
        await delay(retryMs, undefined, { signal }).catch(() => undefined)
      })
  }
  // Not all of them at once: edges start at different times.
  await delay(delayMs, undefined, { signal }).catch(() => undefined)
  let after = '0.0'
  /** The API takes heartbeats with polls that wait so long; 0: an earlier release, or not known yet. */
  let combinedMs = 0
  const polling = repeat(async () => {
    const waitMs = combinedMs === 0 ? pollMs : Math.round(combinedMs * (1 - Math.random() / 8))
    const target = `/edge/v1/state?after=${after}&waitMs=${waitMs}`
    const { status, text } = await (combinedMs === 0
      ? send('GET', target)
      : send('POST', target, heartbeatText(counter, after)))
    counts.polls += 1
    if (status !== 200) return
    const { incarnation, counter: stateCounter } = JSON.parse(JSON.parse(text).payload)
    if (after === '0.0') counts.states += 1
    after = `${incarnation}.${stateCounter}`
  })
  // As core/uplink/sender.zig waits.
  const beating = repeat(async () => {
    const { text } = await send('POST', '/edge/v1/heartbeat', heartbeatText(counter, after))
    counts.heartbeats += 1
    const { nextMs = heartbeatMs, pollWaitMs = 0 } = JSON.parse(text)
    combinedMs = pollWaitMs
    const waitMs = nextMs === heartbeatMs ? nextMs : nextMs * (1 - Math.random() / 4)
    await delay(combinedMs > 0 ? limitMs * 10 : waitMs, undefined, { signal })
  })
  await Promise.all([polling, beating])
}

const machine = { loadAverage: 0.1, processors: 4, memoryTotalBytes: 8e9, memoryAvailableBytes: 6e9 }
const store = { fileCacheBytes: 4e9, storeTotalBytes: 1e12, storeFreeBytes: 5e11 }

/** What changes all the time changes here, too: counters of the edge, and times of its processors. */
function heartbeatText(uptime, after) {
  const [incarnation, counter] = after.split('.').map(Number)
  return JSON.stringify({
    agentVersion: '0.1.0',
    arch: 'x86_64',
    uptimeMs: uptime,
    clockUnixMs: Date.now(),
    devicesBooting: 0,
    reportBacklog: 0,
    state: { incarnation, counter },
    ignored: {},
    machine: { ...machine, ...store },
    load: {
      streams: 10,
      tftpBytes: 1_000_000,
      httpBytes: 100_000_000,
      streamBytes: uptime * 1_000_000,
      reads: uptime * 40,
      coldReads: uptime,
      coldReadUs: uptime * 5_000,
      processorMs: uptime * 4_000,
      processorBusyMs: uptime * 100,
      linkMbps: 10_000,
    },
    address: '192.0.2.1',
    peerPort: 6981,
    streamPort: 6982,
  })
}

function requestOf(options, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', ...options }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part) => {
        text += part
      })
      response.on('error', reject)
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    request.on('error', reject)
    request.end(body)
  })
}

function asMarkdown({ date, command, machine, edgeCount, measured }) {
  // Jobs, checkpoints and metrics take the same with any number of edges.
  const extrapolated = ({ api, postgres, empty }) => empty + ((api + postgres - empty) * extrapolatedTo) / edgeCount
  const row = (one) => {
    const { name, api, postgres, polls, heartbeats, empty } = one
    const rates = [polls, heartbeats].map((rate) => rate.toFixed(0))
    const cores = [api, postgres, api + postgres, empty].map((count) => count.toFixed(3))
    return `| ${[name, ...rates, ...cores, extrapolated(one).toFixed(2)].join(' | ')} |`
  }
  const isReached = measured.filter(({ name }) => name !== 'before').every((one) => extrapolated(one) <= goalCores)
  return `# Idle edges

${date}, ${machine.processors} processors (${machine.model}), load ${machine.loadBefore.toFixed(2)} before. Command:
\`${command}\`

${edgeCount} simulated edges at as many sites of one organization, each with ${devicesPerSite} devices, on loopback: long polls and
heartbeats as the API asks for them, for ${measuredMs / 1000} s in which nothing changes. The time is that of the processes
themselves, so that other programs on the machine change it little.

| | polls/s | heartbeats/s | cores of the API | of PostgreSQL | together | without edges | for ${extrapolatedTo} edges |
| --- | --- | --- | --- | --- | --- | --- | --- |
${measured.map(row).join('\n')}

Goal: ${extrapolatedTo} idle edges take at most ${goalCores} core of both together. **${isReached ? 'Reached' : 'Missed'}.**
`
}
