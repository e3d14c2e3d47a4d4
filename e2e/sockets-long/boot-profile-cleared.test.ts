import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Version {
  id: string
  atEdges: { bootProfiles: { hardware: string; readAheadBytes: number }[] }[]
}

const scratch = scratchDirectory()
const inScratch = (name: string) => path.join(scratch.path, name)
let plane: ControlPlane | undefined
let edge: ControlledEdge

beforeAll(async () => {
  plane = await ControlPlane.start(inScratch('plane'))
  edge = await ControlledEdge.start(plane, inScratch('site'))
  await vdisk(['init', '--beside-files'])
  // A running edge without a store looks for one now and then; one that starts sees it at once.
  await edge.restart()
}, 120_000)
afterAll(async () => {
  await edge?.stop()
  await plane?.stop()
  scratch.remove()
})

/** Done by hand, at the edge. */
async function vdisk(args: string[]): Promise<Record<string, unknown>[]> {
  const store = path.join(edge.data, 'store')
  const running = new RunningProcess(edgeProgram, ['vdisk', ...args, '--store', store, '--json'])
  expect(await running.ended, running.output).toBe(0)
  return running.jsonLines()
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) {
    if (!edge.process.isRunning) throw new Error(edge.process.output)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const isDone = async (jobId: string | undefined) => {
  const { state } = await edge.api.query<{ state: string }>('storeJob.get', { jobId })
  if (state === 'failed') throw new Error(edge.process.output)
  return state === 'done'
}

test('an edge’s boot profiles are shown, and cleared in the files and in the memory of the running edge', {
  timeout: 180_000,
}, async () => {
  const { vdiskId } = edge.tenant
  writeFileSync(path.join(edge.data, 'store/imports/booted.raw'), patterned(1 << 20))
  const made = await edge.api.mutate<{ id: string; jobIds: string[] }>('version.import', {
    vdiskId,
    edgeId: edge.edgeId,
    sourcePath: 'imports/booted.raw',
    kernelPath: 'kernel',
    commandLine: 'quiet',
  })
  await until(() => isDone(made.jobIds[0]))
  const vdiskNow = () => edge.api.query<{ revision: number; versions: Version[] }>('vdisk.get', { vdiskId })
  const profiles = async () =>
    (await vdiskNow()).versions.find(({ id }) => id === made.id)?.atEdges[0]?.bootProfiles ?? []
  const { revision: vdiskRevision } = await vdiskNow()
  await edge.api.mutate('version.promote', { versionId: made.id, vdiskRevision })
  // Until the promotion has reached the edge they boot the previous version.
  while ((await profiles()).length === 0) await edge.boots()
  expect(await profiles()).toMatchObject([{ hardware: 'simulated', readAheadBytes: 4096 }])

  const one = edge.deviceArguments()
  one[one.indexOf('--devices') + 1] = '1'
  const readAhead = async () => {
    expect(await new RunningProcess(simProgram, one).ended).toBe(0)
    await until(() => edge.hasReported())
    const { items } = await edge.api.query<{ items: { id: string }[] }>('boot.list', { limit: 1 })
    return (await edge.api.query<{ readAhead: object }>('boot.get', { bootId: items[0]?.id })).readAhead
  }
  expect(await readAhead()).toMatchObject({ hadProfile: true })
  const { jobIds } = await edge.api.mutate<{ jobIds: string[] }>('version.clearBootProfile', {
    versionId: made.id,
  })
  await until(() => isDone(jobIds[0]))
  await until(async () => (await profiles()).length === 0)
  expect(await vdisk(['profile', 'show', '--version', made.id])).toEqual([])
  expect(await readAhead()).toMatchObject({ hadProfile: false, waitedReads: 1 })
})
