import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { type DesiredState, desiredState } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '../lib/control-plane/api-client.ts'
import { ControlPlane, runDatabase } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

const scratch = scratchDirectory()
const inScratch = (name: string) => path.join(scratch.path, name)
const planes: ControlPlane[] = []
let edge: ControlledEdge
let api: ApiClient

beforeAll(async () => {
  const plane = await ControlPlane.start(inScratch('first'))
  planes.push(plane)
  edge = await ControlledEdge.start(plane, inScratch('site'), ['--json'])
  api = edge.api
}, 120_000)
afterAll(async () => {
  await edge?.stop()
  for (const plane of planes) await plane.stop()
  scratch.remove()
})

const stateFile = () => path.join(edge.data, 'state.json')
const kept = (): DesiredState => {
  const { payload } = JSON.parse(readFileSync(stateFile(), 'utf8')) as { payload: string }
  return desiredState.parse(JSON.parse(payload))
}
const identity = () =>
  JSON.parse(readFileSync(path.join(edge.data, 'identity.json'), 'utf8')) as {
    edgeId: string
    signingKey: string
  }
const nameOf = (state: DesiredState) => state.devices.find(({ id }) => id === edge.tenant.deviceIds[0])?.name

async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) {
    if (!edge.process.isRunning) throw new Error(edge.process.output)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Runs the database program's command on the active plane, as an operator does. */
const command = (...args: string[]) => {
  const plane = current()
  return runDatabase(args, { ownerUrl: plane.databaseUrl, apiUrl: plane.databaseApiUrl })
}
const current = (): ControlPlane => {
  const plane = planes.at(-1)
  if (!plane) throw new Error('no control plane was started')
  return plane
}

/** Renames the first device through the API and waits until the edge has it. */
async function rename(name: string): Promise<void> {
  const deviceId = edge.tenant.deviceIds[0] ?? ''
  const { revision } = await api.query<{ revision: number }>('device.get', { deviceId })
  await api.mutate('device.update', { deviceId, revision, name })
  await eventually(() => nameOf(kept()) === name)
}

const allReported = () => eventually(() => edge.hasReported())

/** Returns the ids of the edge's boots that the current control plane knows. */
async function knownBoots(): Promise<string[]> {
  const db = createDb(current().databaseUrl)
  try {
    const rows = await db.boot.findMany({ where: { edgeId: edge.edgeId }, select: { id: true } })
    const counted = await db.bootRollup.aggregate({
      where: { organizationId: edge.tenant.organizationId, grain: 'day' },
      _sum: { readyCount: true },
    })
    expect(counted._sum.readyCount ?? 0).toBe(rows.length)
    return rows.map(({ id }) => id).sort()
  } finally {
    await db.$disconnect()
  }
}
async function declaredLost(): Promise<number> {
  const db = createDb(current().databaseUrl)
  try {
    const sums = await db.reportCursor.aggregate({
      where: { edgeId: edge.edgeId },
      _sum: { lostCount: true },
    })
    return Number(sums._sum.lostCount ?? 0)
  } finally {
    await db.$disconnect()
  }
}

/** Boots every device once; returns the ids that the edge printed. */
async function bootAll(): Promise<string[]> {
  const before = new Set(edge.printedBoots().keys())
  for (const { outcome } of await edge.boots()) expect(outcome).toBe('ready')
  const isNew = () => [...edge.printedBoots().keys()].filter((id) => !before.has(id))
  await eventually(() => isNew().length === edge.tenant.macs.length)
  return isNew().sort()
}

/** Loses the serving database; fills another one from the file and connects the edges' address to it. */
async function loseAndRestore(args: string[]): Promise<void> {
  await edge.uplink.cut()
  await current().stop()
  planes.pop()
  const plane = await ControlPlane.start(inScratch(`restored-${performance.now() | 0}`), async (urls) => {
    await runDatabase(['restore', ...args], urls)
  })
  planes.push(plane)
  edge.uplink.leadTo(plane.apiUrl)
  // Backups contain no sessions.
  api = await ApiClient.signIn(plane.webUrl, edge.person.email, edge.person.password)
}

test('a restored control plane takes its edge back: the restored state, no enrolment, and each later report once', {
  timeout: 300_000,
}, async () => {
  await eventually(() => existsSync(stateFile()) && nameOf(kept()) === 'pc-01')
  const before = await bootAll()
  await allReported()
  await command('backup', '--to', inScratch('backup'))
  const [enrolled, backedUp] = [identity(), kept()]
  for (const name of ['later-1', 'later-2', 'later-3']) await rename(name)
  const forgotten = await bootAll()
  await allReported()
  const later = kept()
  expect(later.counter).toBeGreaterThan(backedUp.counter)

  await edge.uplink.cut()
  const between = await bootAll()
  await loseAndRestore(['--from', inScratch('backup')])
  await edge.uplink.heal()
  await eventually(() => nameOf(kept()) === 'pc-01')
  const restored = kept()
  expect(restored.incarnation).toBeGreaterThan(later.incarnation)
  expect(restored.counter).toBeLessThanOrEqual(later.counter)
  expect(identity()).toEqual(enrolled)
  const since = await bootAll()
  await allReported()
  // Nothing is lost or doubled; what only the lost database had acknowledged is declared.
  expect(await knownBoots()).toEqual([...before, ...between, ...since].sort())
  expect(await declaredLost()).toBeGreaterThanOrEqual(forgotten.length)
  await rename('goes-on')
})

test('a backup from before a change of the signing key, with the later keys: the edge notices nothing', {
  timeout: 300_000,
}, async () => {
  await command('backup', '--to', inScratch('before-rotation'))
  const { publicKey } = await api.mutate<{ publicKey: string }>('edge.rotateSigningKey', {})
  await eventually(() => identity().signingKey === publicKey)
  await command('backup-keys', '--to', inScratch('keys'))
  await rename('after-rotation')
  const printed = edge.process.output.length
  await loseAndRestore(['--from', inScratch('before-rotation'), '--keys', inScratch('keys')])
  await edge.uplink.heal()
  await eventually(() => nameOf(kept()) === 'goes-on')
  expect(identity().signingKey).toBe(publicKey)
  expect(edge.process.output.slice(printed)).not.toContain('desired state was refused')
})

test('without those keys the edge refuses, reports the remedy, keeps booting devices, and accepts the key that its operator names', {
  timeout: 300_000,
}, async () => {
  const { signingKey: backedUp } = identity()
  await command('backup', '--to', inScratch('no-keys'))
  await api.mutate('edge.rotateSigningKey', {})
  await eventually(() => identity().signingKey !== backedUp)
  await rename('believed')
  await loseAndRestore(['--from', inScratch('no-keys')])
  await edge.uplink.heal()
  await edge.process.waitFor(/desired state was refused: its signature.*bootfarm-edge trust-key --data DIR --key KEY/)
  expect(nameOf(kept())).toBe('believed')
  const refused = () => api.query<{ stateRefused: string | null }>('edge.get', { edgeId: edge.edgeId })
  await eventually(async () => (await refused()).stateRefused === 'signature_invalid')
  await bootAll()

  const name = async (key: string) => {
    const run = new RunningProcess(edgeProgram, ['trust-key', '--data', edge.data, '--key', key])
    return { code: await run.ended, said: run.output }
  }
  expect(await name('nonsense')).toMatchObject({
    code: 1,
    said: expect.stringMatching(/nonsense is not a key/),
  })
  const { keys } = await api.query<{ keys: { publicKey: string; isNewest: boolean }[] }>('organization.signingKeys', {})
  const shown = keys.find(({ isNewest }) => isNewest)?.publicKey ?? ''
  expect(shown).toBe(backedUp)
  expect(await name(shown)).toMatchObject({ code: 0 })
  await eventually(() => nameOf(kept()) === 'goes-on')
  // Pinned after the state.
  await eventually(() => identity().signingKey === backedUp)
  expect(identity().edgeId).toBe(edge.edgeId)
  await edge.restart()
  await rename('trusted')
  await allReported()
  expect(edge.process.output).not.toContain('desired state on disk was refused')
})
