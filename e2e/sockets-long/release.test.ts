import { readFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { type DesiredState, desiredState } from '@bootfarm/proto/uplink'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
const inScratch = (name: string) => path.join(scratch.path, name)
/** Long enough for the state to reach the edge before the instant, also on a busy machine. */
const untilReleaseMs = 30_000
let plane: ControlPlane | undefined
let edge: ControlledEdge

beforeAll(async () => {
  plane = await ControlPlane.start(inScratch('plane'))
  edge = await ControlledEdge.start(plane, inScratch('site'))
}, 120_000)
afterAll(async () => {
  await edge?.stop()
  await plane?.stop()
  scratch.remove()
})

function keptState(): DesiredState {
  const { payload } = JSON.parse(readFileSync(path.join(edge.data, 'state.json'), 'utf8')) as {
    payload: string
  }
  return desiredState.parse(JSON.parse(payload))
}

/** Returns what the device's iPXE would run. */
async function scriptOf(mac: string): Promise<string> {
  const answer = await fetch(`${edge.httpUrl}/m/${mac}/boot.ipxe`)
  return answer.ok ? answer.text() : ''
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) {
    if (!edge.process.isRunning) throw new Error(edge.process.output)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function release(releasedAt: Date): Promise<string> {
  const { organizationId, siteId, vdiskId, versionId } = edge.tenant
  const db = createDb(plane?.databaseUrl ?? '')
  try {
    const { sizeBytes } = await db.vdiskVersion.findUniqueOrThrow({
      where: { organizationId_id: { organizationId, id: versionId } },
      select: { sizeBytes: true },
    })
    const { id } = await db.vdiskVersion.create({
      data: {
        organizationId,
        vdiskId,
        number: 2,
        sizeBytes,
        diskPath: 'disk',
        kernelPath: 'kernel',
        commandLine: 'released',
        releasedAt,
      },
      select: { id: true },
    })
    await db.vdisk.update({
      where: { organizationId_id: { organizationId, id: vdiskId } },
      data: { pendingVersionId: id, defaultVersionId: versionId },
    })
    await db.$executeRaw`select pg_notify('bootfarm', ${`state:${siteId}`})`
    return id
  } finally {
    await db.$disconnect()
  }
}

test('a release takes effect at its instant with the control plane away and after a kill -9, and running boots keep their version', async () => {
  const [first = '', second = ''] = edge.tenant.macs
  await until(async () => (await scriptOf(first)).includes('quiet'))
  const releasedAt = new Date(Date.now() + untilReleaseMs)
  const pendingId = await release(releasedAt)
  await until(() => keptState().vdisks.some(({ pending }) => pending?.versionId === pendingId))
  await edge.uplink.cut()
  await edge.restart()
  await until(() => Date.now() >= releasedAt.getTime())
  expect(await scriptOf(second)).toContain('released')
  // Its boot began earlier.
  expect(await scriptOf(first)).toContain('quiet')
  const { versionId } = edge.tenant
  expect(keptState().devices.map((device) => device.versionId)).toEqual(edge.tenant.macs.map(() => versionId))
}, 120_000)
