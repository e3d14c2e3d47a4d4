import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EdgeClient } from '../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { testOrigin, testSecret } from '../../test/test-constants.ts'
import { signIn } from '../../test/test-tenant.ts'
import { createAuth } from '../http/auth/auth.ts'
import { setUpDemo, setUpDemoSite } from './set-up.ts'

let api: TestApi
let folder: string

beforeAll(async () => {
  api = await startTestApi()
  folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-demo-'))
})
afterAll(async () => {
  await api.close()
  rmSync(folder, { recursive: true, force: true })
})

function setUp(directory: string) {
  const auth = createAuth({ db: api.db, webUrl: testOrigin, secret: testSecret })
  return setUpDemo({ db: api.db, clock: api.clock.read }, auth, directory)
}

function readSignIn(directory: string): { email: string; password: string } {
  return JSON.parse(readFileSync(path.join(directory, 'demo-sign-in.json'), 'utf8'))
}

async function countRows() {
  const { db } = api
  const tables = [db.organization, db.user, db.membership, db.farm, db.site, db.collection, db.device] as const
  const counts = []
  for (const table of [...tables, db.vdisk, db.vdiskVersion]) counts.push(await (table as typeof db.farm).count())
  return counts
}

test('set-up makes everything once, and the printed password signs in', async () => {
  const first = await setUp(folder)
  const rows = await countRows()
  expect(rows).toEqual([1, 1, 1, 1, 1, 2, 6, 1, 2])
  const second = await setUp(folder)
  expect({ ...second, joinToken: null }).toEqual({ ...first, joinToken: null })
  expect(await countRows()).toEqual(rows)
  expect((await signIn(api, readSignIn(folder))).status).toBe(200)
  expect(statSync(path.join(folder, 'demo-sign-in.json')).mode & 0o777).toBe(0o600)
})

test('a data directory of another installation gets a password that works', async () => {
  const other = path.join(folder, 'other')
  await setUp(other)
  expect(readSignIn(other).password).not.toBe(readSignIn(folder).password)
  expect((await signIn(api, readSignIn(other))).status).toBe(200)
})

test('a join token is given until an edge has enrolled', async () => {
  const { joinToken } = await setUp(folder)
  const edge = await EdgeClient.enrolled(api.url, joinToken ?? '')
  const payload = JSON.parse(String((await edge.state('0.0', 0)).body?.payload))
  expect(payload.devices.map((device: { mac: string }) => device.mac)).toEqual(
    [1, 2, 3, 4, 5, 6].map((number) => `02:bf:00:00:00:0${number}`),
  )
  expect(payload.vdisks[0].versions[0]).toMatchObject({ diskPath: 'demo/1/disk.raw', sizeBytes: 419_430_400 })
  expect((await setUp(folder)).joinToken).toBeNull()
})

test('a further site has an edge of its own, a vDisk with one version, and its devices', async () => {
  const { organizationId, farmId } = await setUp(folder)
  const context = { db: api.db, clock: api.clock.read }
  const vdisk = {
    name: 'Debian',
    sizeBytes: 1_048_576,
    diskPath: 'one/disk.raw',
    kernelPath: 'one/kernel',
    initrdPath: 'one/initrd',
    commandLine: 'console=ttyS0',
  }
  const devices = [{ name: 'machine-1', mac: '52:54:00:78:00:00' }]
  const site = { name: 'Machines', unknownDevices: 'ignore' as const, needsJoinToken: true, vdisk, devices }
  const first = await setUpDemoSite(context, { organizationId, farmId }, site)
  const edge = await EdgeClient.enrolled(api.url, first.joinToken ?? '')
  const state = async () => JSON.parse(String((await edge.state('0.0', 0)).body?.payload))
  expect(await state()).toMatchObject({ siteName: 'Machines', unknownDevices: 'ignore', devices })
  expect((await state()).vdisks[0].versions).toMatchObject([{ number: 1, diskPath: 'one/disk.raw' }])

  const enrolled = { ...site, needsJoinToken: false }
  const again = await setUpDemoSite(context, { organizationId, farmId }, enrolled)
  expect(again).toEqual({ name: 'Machines', siteId: first.siteId, joinToken: null })
  expect((await state()).vdisks[0].versions).toMatchObject([{ number: 1 }])
  const other = {
    ...enrolled,
    unknownDevices: 'boot' as const,
    vdisk: { ...vdisk, diskPath: 'two/disk.raw' },
  }
  await setUpDemoSite(context, { organizationId, farmId }, other)
  expect(await state()).toMatchObject({ unknownDevices: 'boot' })
  expect((await state()).vdisks[0].versions).toMatchObject([{ number: 2, diskPath: 'two/disk.raw' }])
})
