import { execFileSync } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { addOwner } from '../../../apps/api/test/add-owner.ts'
import { testOrigin } from '../../../apps/api/test/test-constants.ts'
import { createTenant, makeJoinToken, sessionCookie } from '../../../apps/api/test/test-tenant.ts'
import { edgeProgram } from '../../lib/paths.mjs'
import { say } from '../../lib/progress.mjs'
import { withControlPlane } from '../control-plane.mjs'
import { WatchedProcess } from '../watched-process.mjs'
import { addDevices, bootRepeatedly, findSeats, p95, untilGiven, writeBootFiles, writeKernel } from './boots.mjs'

export const lineMbit = 100
/** Between the control plane's network and that of the edges. */
export const line = {
  device: 'line0',
  planeIp: '10.84.0.1',
  siteIp: '10.84.0.2',
  edges: 10,
  /** On the site's loopback device, where devices without a network card boot. */
  edgeIp: (number) => `127.85.0.${number}`,
}
const mib = 1 << 20
const diskBytes = 5 * 1024 * mib
const contentBytes = 512 * mib
const changedBytes = 200_000_000
/** Changes are in runs, as installed packages are. */
const runBytes = mib
const limitMs = 600_000
const pollMs = 100
/** Of each device, before the new version is there. */
const roundsAlone = 3
const metricsPort = 9100

/**
 * @param {string} siteName the namespace of the edges
 * @returns {Promise<{ differenceBytes: number, linkSeconds: number, lineBytes: number, fetchedBytes: number,
 *   asked: number[], held: number[], boots: { alone: object, meanwhile: object } }>} `fetchedBytes`: of the difference,
 *   that edges of the site have got from the control plane; seconds from the order of the first fetch until that of
 *   each edge, and until it has the version
 */
export async function measureDistribution(siteName) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-distribution-'))
  const objects = path.join(scratch, 'objects')
  mkdirSync(objects)
  const settings = { API_HOST: '0.0.0.0', BOOTFARM_OBJECTS: objects }
  const edges = []
  try {
    return await withControlPlane('distribution', (place) => run({ place, scratch, siteName, edges }), { settings })
  } finally {
    for (const { process } of edges) await process.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function run({ place, scratch, siteName, edges }) {
  const { db } = place
  const tenant = await createTenant(place, 'distribution')
  const { organizationId, farmId, vdiskId } = tenant
  const there = await db.site.create({ data: { organizationId, farmId, name: 'Far away', timeZone: 'UTC' } })
  const macs = await addDevices(db, { organizationId, siteId: there.id, vdiskId, count: line.edges })
  const { userId } = await addOwner(place, organizationId, 'Owner')
  const api = { url: place.url, cookie: await sessionCookie(place, userId) }
  const maker = await startEdge(place, tenant, { folder: path.join(scratch, '0'), ip: line.planeIp, edges })
  const seats = []
  for (let number = 1; number <= line.edges; number++) {
    const where = { folder: path.join(scratch, String(number)), ip: line.edgeIp(number), siteName, edges }
    seats.push({ edge: await startEdge(place, { ...tenant, siteId: there.id }, where), mac: macs[number - 1] })
  }
  say(`${line.edges + 1} edges run`)
  const store = path.join(maker.folder, 'store')
  const images = path.join(store, 'imports')
  mkdirSync(images, { recursive: true })
  writeKernel(store)
  const image = path.join(images, 'base.raw')
  writeBase(image)
  const order = { vdiskId, edgeId: maker.id, kernelPath: 'kernel' }
  const base = await mutate(api, 'version.import', { ...order, sourcePath: 'imports/base.raw' })
  await untilHeld(place, base.id)
  const { revision: vdiskRevision } = await db.vdisk.findFirstOrThrow({ where: { id: vdiskId } })
  await mutate(api, 'version.promote', { versionId: base.id, vdiskRevision })
  await untilGiven(seats, base.id, limitMs)
  say('all edges have the first version, and their devices boot it')
  const found = await findSeats({ siteName, image }, { edges: seats.map(({ edge }) => edge), macs })
  const site = { siteName, seats: found, image }
  const alone = await bootRepeatedly(site, (rounds) => rounds === roundsAlone)
  execFileSync('tc', ['qdisc', 'add', 'dev', line.device, 'root', 'tbf', ...shape])
  try {
    copyFileSync(image, path.join(images, 'update.raw'))
    change(path.join(images, 'update.raw'))
    const before = { line: lineBytes(), fetched: fetchedBytes(siteName) }
    const more = { sourcePath: 'imports/update.raw', parentVersionId: base.id }
    const update = await mutate(api, 'version.import', { ...order, ...more })
    await untilFetching(place, update.id)
    let isOver = false
    const held = untilHeld(place, update.id).finally(() => {
      isOver = true
    })
    const [meanwhile] = await Promise.all([bootRepeatedly(site, () => isOver), held])
    return {
      ...(await distributionFigures(place, update.id)),
      lineBytes: lineBytes() - before.line,
      fetchedBytes: fetchedBytes(siteName) - before.fetched,
      boots: { alone: { p95: p95(alone), seconds: alone }, meanwhile: { p95: p95(meanwhile), seconds: meanwhile } },
    }
  } finally {
    execFileSync('tc', ['qdisc', 'del', 'dev', line.device, 'root'])
  }
}

/** With what Ethernet has around a frame of Linux: preamble, checksum and gap. */
const shape = ['rate', `${lineMbit}mbit`, 'burst', '16kb', 'limit', '1mb', 'overhead', '24']

async function startEdge(place, tenant, { folder, ip, siteName, edges }) {
  const data = path.join(folder, 'edge')
  mkdirSync(folder, { recursive: true })
  const url = place.url.replace('127.0.0.1', line.planeIp)
  const joinToken = await makeJoinToken(place, tenant)
  const command = (args) =>
    siteName
      ? { command: 'ip', args: ['netns', 'exec', siteName, edgeProgram, ...args] }
      : { command: edgeProgram, args }
  const succeed = (args) => {
    const { command: program, args: all } = command(args)
    execFileSync(program, all, { stdio: ['ignore', 'pipe', 'pipe'] })
  }
  const store = path.join(folder, 'store')
  mkdirSync(store)
  succeed(['vdisk', 'init', '--store', store, '--organization', tenant.organizationId])
  succeed(['enrol', '--url', url, '--token', joinToken, '--data', data, '--insecure-uplink'])
  const bootFiles = path.join(folder, 'boot-files')
  writeBootFiles(bootFiles)
  const dhcp = siteName
    ? ['--dhcp', 'server', '--dhcp-pool', '127.86.0.1-127.86.0.99', '--trust-mac-from', '127.0.0.0/8']
    : ['--dhcp', 'off']
  const where = ['--listen', ip, '--metrics', `${ip}:${metricsPort}`, '--boot-files', bootFiles, '--insecure-uplink']
  const serve = ['serve', '--data', data, '--store', store, ...where, ...dhcp]
  const process = new WatchedProcess(command(serve))
  const { edgeId: id } = JSON.parse(readFileSync(path.join(data, 'identity.json'), 'utf8'))
  const edge = { id, ip, folder, process }
  edges.push(edge)
  await process.waitFor(/serving on/, limitMs)
  return edge
}

/** Random bytes in the first part of the disk; the rest is a hole. */
function writeBase(file) {
  const fd = openSync(file, 'w')
  const block = Buffer.alloc(mib)
  for (let at = 0; at < contentBytes; at += mib) writeSync(fd, randomFillSync(block), 0, mib, at)
  ftruncateSync(fd, diskBytes)
  closeSync(fd)
}

/** Behind the first part, so that neither disk has more than it. */
function change(file) {
  const fd = openSync(file, 'r+')
  const run = Buffer.alloc(runBytes)
  const count = Math.ceil(changedBytes / runBytes)
  const step = Math.floor(diskBytes / count / 4096) * 4096
  for (let index = 0; index < count; index++) {
    const length = Math.min(runBytes, changedBytes - index * runBytes)
    writeSync(fd, randomFillSync(run), 0, length, index * step)
  }
  closeSync(fd)
}

async function mutate({ url, cookie }, procedure, input) {
  const answer = await fetch(`${url}/api/trpc/${procedure}`, {
    method: 'POST',
    headers: { cookie, origin: testOrigin, 'content-type': 'application/json' },
    body: JSON.stringify(input),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${procedure} was refused: ${text}`)
  return JSON.parse(text).result.data
}

async function untilFetching({ db }, versionId) {
  const deadline = performance.now() + limitMs
  while (performance.now() < deadline) {
    if ((await db.storeJob.count({ where: { versionId, kind: 'fetch' } })) > 0) return
    await delay(pollMs)
  }
  throw new Error(`no edge was ordered to fetch the version in ${limitMs / 1000} s.`)
}

async function untilHeld({ db }, versionId) {
  const deadline = performance.now() + limitMs
  while (performance.now() < deadline) {
    const jobs = await db.storeJob.findMany({
      where: { versionId },
      select: { kind: true, state: true, message: true },
    })
    for (const { kind, state, message } of jobs) if (state === 'failed') throw new Error(`a ${kind} failed: ${message}`)
    const held = await db.edgeVersion.count({ where: { versionId, state: 'present' } })
    // An edge may list the version before it reports that its job is done.
    if (held === line.edges + 1 && jobs.every(({ state }) => state === 'done')) return
    await delay(pollMs)
  }
  throw new Error(`not all edges had the version after ${limitMs / 1000} s.`)
}

async function distributionFigures({ db }, versionId) {
  const fetches = await db.storeJob.findMany({
    where: { versionId, kind: 'fetch' },
    select: { edgeId: true, askedAt: true, endedAt: true, differenceSizeBytes: true },
  })
  const begin = Math.min(...fetches.map(({ askedAt }) => askedAt.getTime()))
  const differenceBytes = Number(fetches[0]?.differenceSizeBytes)
  const seconds = (at) => (at.getTime() - begin) / 1000
  return {
    differenceBytes,
    linkSeconds: (differenceBytes * 8) / (lineMbit * 1e6),
    asked: fetches.map(({ askedAt }) => seconds(askedAt)),
    held: fetches.map(({ endedAt }) => seconds(endedAt)),
  }
}

/** Bytes of differences that the edges have got from the control plane since they started. */
function fetchedBytes(siteName) {
  const read = (number) => {
    const url = `http://${line.edgeIp(number)}:${metricsPort}/metrics`
    const program = `process.stdout.write(await (await fetch('${url}')).text())`
    const node = [process.execPath, '--input-type=module', '--eval', program]
    const text = execFileSync('ip', ['netns', 'exec', siteName, ...node], { encoding: 'utf8' })
    const found = text.match(/^bootfarm_edge_difference_bytes_total\{move="from_control_plane"\} (\d+)$/m)
    if (!found) throw new Error(`${url} does not count the bytes of differences.`)
    return Number(found[1])
  }
  return Array.from({ length: line.edges }, (_, index) => read(index + 1)).reduce((sum, bytes) => sum + bytes, 0)
}

/** That left the control plane's end for the site. */
function lineBytes() {
  const text = execFileSync('ip', ['-s', '-j', 'link', 'show', 'dev', line.device], { encoding: 'utf8' })
  return JSON.parse(text)[0].stats64.tx.bytes
}
