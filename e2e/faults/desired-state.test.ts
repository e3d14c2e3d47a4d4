import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { required } from '../lib/control-plane/api-client.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
/** More than an edge takes (`vdisks_max` in its desired_state.zig). */
const tooManyVdisks = 257
let databaseUrl: string
let edge: ControlledEdge | undefined

beforeAll(async () => {
  databaseUrl = readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim()
  const plane = {
    databaseUrl,
    apiUrl: required('BOOTFARM_API_URL'),
    webUrl: required('BOOTFARM_WEB_URL'),
  }
  edge = await ControlledEdge.start(plane, scratch.path)
})
afterAll(async () => {
  await edge?.stop()
  scratch.remove()
})

/** Returns what the device's iPXE would run; empty where the edge has nothing for it. */
async function scriptOf({ httpUrl, process }: ControlledEdge, mac: string): Promise<string> {
  if (!process.isRunning) throw new Error(process.output)
  const answer = await fetch(`${httpUrl}/m/${mac}/boot.ipxe`)
  return answer.ok ? answer.text() : ''
}

/** Without its long poll an edge would see each change only when the poll ends, 25 s later: too late for this test. */
test('the edge acts on each change of the dashboard at once, without polling', async () => {
  if (!edge) throw new Error('the edge did not start')
  const { api, tenant } = edge
  const { siteId, vdiskId } = tenant
  const make = (procedure: string, input: object) => api.mutate<{ id: string }>(procedure, input)
  const { id: collectionId } = await make('collection.create', { siteId, name: 'Nothing to boot' })
  for (const number of [1, 2, 3, 4, 5]) {
    const mac = `02:bf:00:00:0e:0${number}`
    const { id: deviceId } = await make('device.create', { collectionId, name: `new-${number}`, mac })
    expect(await scriptOf(edge, mac)).toBe('')
    await make('device.update', { deviceId, revision: 1, vdiskId })
    while (!(await scriptOf(edge, mac)).includes('quiet')) await new Promise((resolve) => setTimeout(resolve, 20))
    expect(await scriptOf(edge, mac)).toContain('kernel')
  }
})

test('a state that exceeds the edge’s limits is refused as a whole, and the edge’s page reports it', async () => {
  if (!edge) throw new Error('the edge did not start')
  const { tenant, process } = edge
  const { organizationId, farmId, siteId, collectionId } = tenant
  const db = createDb(databaseUrl)
  const wake = () => db.$executeRaw`select pg_notify('bootfarm', ${`state:${siteId}`})`
  const untilRefused = async (reason: string | null) => {
    while ((await edge?.query<{ stateRefused: string | null }>())?.stateRefused !== reason) {
      if (!process.isRunning) throw new Error(process.output)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
  try {
    const vdisks = await db.vdisk.createManyAndReturn({
      data: Array.from({ length: tooManyVdisks }, (_, index) => ({
        organizationId,
        farmId,
        name: `planted-${index}`,
      })),
      select: { id: true },
    })
    await db.vdiskVersion.createMany({
      data: vdisks.map(({ id }) => ({
        organizationId,
        vdiskId: id,
        number: 1,
        sizeBytes: 32_768,
        diskPath: 'disk',
        commandLine: '',
      })),
    })
    await db.device.createMany({
      data: vdisks.map(({ id }, index) => ({
        organizationId,
        siteId,
        collectionId,
        vdiskId: id,
        name: `planted-${index}`,
        mac: `02:bf:01:00:${(index >> 8).toString(16).padStart(2, '0')}:${(index & 255).toString(16).padStart(2, '0')}`,
      })),
    })
    await wake()
    await untilRefused('too_large')
    expect(process.output).toContain('The desired state was refused: it holds more than an edge takes.')
    // The edge keeps the previous state.
    expect(await scriptOf(edge, tenant.macs[0] ?? '')).toContain('kernel')
    await db.device.deleteMany({ where: { organizationId, name: { startsWith: 'planted-' } } })
    await wake()
    await untilRefused(null)
  } finally {
    await db.$disconnect()
  }
})
