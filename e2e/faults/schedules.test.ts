import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createPerson, createTenant, makeJoinToken, type TestTenant } from '@bootfarm/api/testing/tenant'
import { createDb } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePorts } from '../../scripts/lib/free-ports.mjs'
import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { edgeAddress, edgePorts, patterned, portArguments, untilListening } from '../lib/edge/loopback-edge.ts'
import { x86Kernel } from '../lib/images/loader-files.ts'
import { edgeProgram, scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Run {
  id: string
  state: string
  counts: Record<string, number>
}

interface RunDevice {
  name: string
  state: string
  sentAt: string
  text: string | null
  boot: { id: string; outcome: string | null; startedAt: string } | null
}

const sectors = 64
const deviceCount = 6
const ratePerMinute = 600
const scratch = scratchDirectory()
const data = path.join(scratch.path, 'edge')
const apiUrl = required('BOOTFARM_API_URL')
const apiPid = () => Number(readFileSync(path.join(required('BOOTFARM_DATA'), 'run/api.pid'), 'utf8').split(' ')[0])

let api: ApiClient
let tenant: TestTenant
let edge: RunningProcess
let devices: RunningProcess
let hookLog: string

/** A separate site in the product under test: a real edge with a power command, and sleeping devices. */
beforeAll(async () => {
  const databaseUrl = readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim()
  const db = createDb(databaseUrl)
  const clock = { now: new Date(), advance: () => {}, read: () => new Date() }
  tenant = await createTenant({ db, clock }, `schedules-${process.pid}`)
  const person = await createPerson({ db }, tenant.organizationId, 'operator')
  const joinToken = await makeJoinToken({ db, clock }, tenant)
  const where = { organizationId_id: { organizationId: tenant.organizationId, id: tenant.versionId } }
  const files = { sizeBytes: sectors * 512, diskPath: 'disk', kernelPath: 'kernel', initrdPath: null }
  await db.vdiskVersion.update({ where, data: files })
  await db.$disconnect()
  api = await ApiClient.signIn(required('BOOTFARM_WEB_URL'), person.email, person.password)
  const [wolPort = 0] = await freePorts(1)
  await startEdge(joinToken, wolPort)
  const trace = path.join(scratch.path, 'trace.csv')
  writeFileSync(trace, 'time_ms,offset,length\n0,0,4096\n')
  devices = new RunningProcess(simProgram, [
    'boot',
    '--json',
    '--server',
    edgeAddress,
    ...simPorts,
    '--devices',
    String(deviceCount),
    '--first-mac',
    tenant.macs[0] ?? '',
    '--trace',
    trace,
    '--speed',
    '0',
    '--breather-ms',
    '1',
    '--asleep',
    '--wol-port',
    String(wolPort),
  ])
})

afterAll(async () => {
  await devices?.stop()
  await edge?.stop()
  scratch.remove()
})

let simPorts: string[] = []

async function startEdge(joinToken: string, wolPort: number): Promise<void> {
  const store = path.join(data, 'store')
  const bootFiles = path.join(scratch.path, 'boot-files')
  for (const folder of [store, bootFiles]) mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(store, 'disk'), patterned(sectors * 512))
  writeFileSync(path.join(store, 'kernel'), x86Kernel('6.1.0-1-simulated', patterned(30_001)))
  writeFileSync(path.join(bootFiles, 'undionly.kpxe'), patterned(5000))
  const enrolment = new RunningProcess(edgeProgram, ['enrol', '--url', apiUrl, '--token', joinToken, '--data', data])
  expect(await enrolment.ended, enrolment.output).toBe(0)
  const ports = await edgePorts()
  simPorts = ['--dhcp-port', String(ports.dhcp), '--tftp-port', String(ports.tftp)]
  edge = new RunningProcess(edgeProgram, [
    'serve',
    '--listen',
    edgeAddress,
    '--dhcp',
    'server',
    '--dhcp-pool',
    '127.77.9.10-127.77.9.99',
    ...portArguments(ports),
    '--data',
    data,
    '--boot-files',
    bootFiles,
    '--wol-target',
    `${edgeAddress}:${wolPort}`,
    '--power-hook',
    writeHook(wolPort),
  ])
  await untilListening(edge, ports.http)
}

/** Wakes the device that it is called for, and fails for the last one. */
function writeHook(wolPort: number): string {
  const hook = path.join(scratch.path, 'power-hook')
  hookLog = path.join(scratch.path, 'hook.log')
  const script = `#!${process.execPath}
const [action, mac, deviceId, name] = process.argv.slice(2)
require('node:fs').appendFileSync(${JSON.stringify(hookLog)}, [action, mac, deviceId, name].join('|') + '\\n')
if (mac === process.env.BOOTFARM_MAC && mac.endsWith('${tenant.macs[deviceCount - 1]?.slice(-2)}')) {
  console.log('no power there')
  process.exit(3)
}
const address = Buffer.from(mac.replaceAll(':', ''), 'hex')
const packet = Buffer.concat([Buffer.alloc(6, 255), ...Array(16).fill(address)])
const socket = require('node:dgram').createSocket('udp4')
socket.send(packet, ${wolPort}, '${edgeAddress}', () => socket.close())
`
  writeFileSync(hook, script, { mode: 0o755 })
  return hook
}

async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** A single run, late enough that its edge hears of it in time. */
async function scheduleSoon(name: string, power: string, inMs = 2000): Promise<{ id: string; at: Date }> {
  const at = new Date(Math.ceil(Date.now() / 1000) * 1000 + inMs)
  const { id } = await api.mutate<{ id: string }>('schedule.create', {
    farmId: tenant.farmId,
    siteId: tenant.siteId,
    name,
    power,
    ratePerMinute,
    timeZone: 'UTC',
    when: { kind: 'once', at: at.toISOString().slice(0, 19) },
    targets: [{ kind: 'collection', collectionId: tenant.collectionId }],
  })
  return { id, at }
}

/** Everything about the schedule's only run has been reported. */
function runOf(scheduleId: string, isOver: (run: Run) => boolean): Promise<Run> {
  return eventually(async () => {
    const { items } = await api.query<{ items: Run[] }>('schedule.runs', { scheduleId })
    return items[0] && isOver(items[0]) ? items[0] : undefined
  })
}

const devicesOf = async (runId: string) =>
  (await api.query<{ items: RunDevice[] }>('schedule.runDevices', { runId })).items

const allReady = ({ state, counts }: Run) => state === 'done' && counts.ready === deviceCount

test('a schedule boots its devices at its instant, one after the other, and its run shows each boot', async () => {
  const { id, at } = await scheduleSoon('Mornings', 'wake_on_lan')
  const run = await runOf(id, allReady)
  const started = await devicesOf(run.id)
  expect(started).toHaveLength(deviceCount)
  for (const { state, sentAt, boot } of started) {
    expect([state, boot?.outcome]).toEqual(['ready', 'ready'])
    expect(new Date(sentAt).getTime()).toBeGreaterThanOrEqual(at.getTime())
  }
  const order = started.map(({ sentAt }) => new Date(sentAt).getTime())
  expect(order).toEqual([...order].sort((a, b) => a - b))
  // A late edge catches up, so that two may start together, but none before its turn.
  // The edge waits by another clock than the one it reports, and both are cut to milliseconds.
  order.forEach((sentAt, turn) => {
    expect(sentAt).toBeGreaterThanOrEqual(at.getTime() + (turn * 60_000) / ratePerMinute - 1)
  })
})

test('devices boot while the control plane is unreachable, and the run is reported when it returns', async () => {
  const booted = devices.jsonLines().length
  const { id } = await scheduleSoon('Alone', 'wake_on_lan')
  await eventually(async () => readFileSync(path.join(data, 'state.json'), 'utf8').includes(id) || undefined)
  const pid = apiPid()
  process.kill(pid, 'SIGSTOP')
  try {
    await eventually(async () => devices.jsonLines().length >= booted + deviceCount || undefined)
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  const run = await runOf(id, allReady)
  expect((await devicesOf(run.id)).map(({ boot }) => boot?.outcome)).toEqual(Array(deviceCount).fill('ready'))
})

test('a power command starts devices too, and the run shows its message about a device that it cannot start', async () => {
  const { id } = await scheduleSoon('By command', 'hook')
  const run = await runOf(id, ({ state, counts }) => state === 'done' && counts.ready === deviceCount - 1)
  const failed = (await devicesOf(run.id)).filter(({ state }) => state !== 'ready')
  expect(failed).toMatchObject([{ state: 'failed', text: 'exit 3: no power there' }])
  const calls = readFileSync(hookLog, 'utf8').trim().split('\n').sort()
  expect(calls).toEqual(
    tenant.macs
      .slice(0, deviceCount)
      .map((mac, index) => expect.stringMatching(`^power_on\\|${mac}\\|${tenant.deviceIds[index]}\\|`)),
  )
})

const callersSpan = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

test('the boots of a run that a caller starts link to the caller’s span, and a hostile one starts nothing', async () => {
  const { id } = await scheduleSoon('Traced', 'wake_on_lan', 3_600_000)
  for (const traceparent of [`${callersSpan}\r\nx: y`, callersSpan.replace('0af7', '\u202e'), '00-0-0-0'])
    await expect(api.mutate('schedule.runNow', { scheduleId: id, traceparent })).rejects.toThrow(
      'A traceparent has the form',
    )
  expect(await api.query('schedule.runs', { scheduleId: id })).toMatchObject({ items: [] })
  await api.mutate('schedule.runNow', { scheduleId: id, traceparent: callersSpan })
  const booted = await devicesOf((await runOf(id, allReady)).id)
  expect(booted).toHaveLength(deviceCount)
  for (const { boot } of booted) {
    const file = await api.text(`/api/v1/boots/${boot?.id}/export?format=json`)
    expect(JSON.parse(file)).toMatchObject({ startedBy: callersSpan })
  }
})
