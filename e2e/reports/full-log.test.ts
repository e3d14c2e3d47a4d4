import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

interface EdgeDetail {
  reportsLost: number
  reportGaps: { count: number; fromAt: string | null; untilAt: string | null; reason: string }[]
  appliedState: unknown
}

const scratch = scratchDirectory()
let plane: ControlPlane
let edge: ControlledEdge

beforeAll(async () => {
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'))
  edge = await ControlledEdge.start(plane, path.join(scratch.path, 'site'), ['--report-log', '256K'])
})
afterAll(async () => {
  await edge?.stop()
  await plane?.stop()
  scratch.remove()
})

async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
const until = (isSo: (edge: EdgeDetail) => boolean) =>
  eventually(async () => {
    const seen = await edge.query<EdgeDetail>()
    return isSo(seen) ? seen : undefined
  })
/** The edge has recorded that it could not keep something. */
const hasLost = () => readFileSync(path.join(edge.data, 'reports/gaps')).some((byte) => byte !== 0)
const notedGaps = () => readFileSync(path.join(edge.data, 'reports/gaps'))
const bootCount = async () => {
  const { items } = await edge.api.query<{ items: unknown[] }>('boot.list', {
    edgeId: edge.edgeId,
    limit: 100,
  })
  return items.length
}

test('with a full report log devices keep booting, and the control plane shows the lost reports and their time, across restarts', async () => {
  const began = new Date(Date.now() - 1000).toISOString()
  await until(({ appliedState }) => appliedState !== null)
  await edge.boots()
  await eventually(async () => (edge.hasReported() ? true : undefined))
  expect((await edge.query<EdgeDetail>()).reportsLost).toBe(0)
  expect(hasLost()).toBe(false)
  await edge.uplink.cut()
  const everyone = edge.tenant.macs.map((mac) => expect.objectContaining({ mac, outcome: 'ready' }))
  let rounds = 1
  for (; !hasLost(); rounds += 1) expect(await edge.boots()).toEqual(expect.arrayContaining(everyone))
  for (let start = 0; start < 2; start += 1) {
    await edge.restart()
    // What is left of the log may take the reports of a few boots.
    for (const before = notedGaps(); notedGaps().equals(before); rounds += 1)
      expect(await edge.boots()).toEqual(expect.arrayContaining(everyone))
  }
  await edge.uplink.open()
  await eventually(async () => (edge.hasReported() ? true : undefined))
  const seen = await edge.query<EdgeDetail>()
  // Each of the two starts has lost the reports of its boots.
  expect(seen.reportGaps.length).toBeGreaterThanOrEqual(3)
  expect(seen.reportGaps.reduce((sum, { count }) => sum + count, 0)).toBe(seen.reportsLost)
  const now = new Date().toISOString()
  for (const { reason, fromAt, untilAt } of seen.reportGaps) {
    expect(reason).toBe('report log full')
    expect([began, fromAt, untilAt, now].map(String).toSorted()).toEqual([began, fromAt, untilAt, now])
  }
  // Some boots are missing, and none is there twice; once there is capacity again, nothing is lost.
  const known = await bootCount()
  expect(known).toBeLessThan(rounds * edge.tenant.macs.length)
  await edge.boots()
  await eventually(async () => ((await bootCount()) === known + edge.tenant.macs.length ? true : undefined))
  expect((await edge.query<EdgeDetail>()).reportsLost).toBe(seen.reportsLost)
})
