import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { KillDrill, type Victim } from '../lib/control-plane/kill-drill.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

/** Each victim after each other one, and twice the same. */
const order: Victim[] = [
  ...(['api', 'postgres', 'edge', 'api', 'edge', 'edge'] as const),
  ...(['postgres', 'api', 'api', 'postgres'] as const),
]
const scratch = scratchDirectory()
let plane: ControlPlane
let edge: ControlledEdge
let drill: KillDrill

beforeAll(async () => {
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'))
  edge = await ControlledEdge.start(plane, path.join(scratch.path, 'site'), ['--json'])
  edge.uplink.lostShare = 0.5
  drill = new KillDrill(plane, [edge])
})
afterAll(async () => {
  await drill?.stop()
  await edge?.stop()
  await plane?.stop()
  scratch.remove()
})

test('ten kill -9 of the API, PostgreSQL and the edge, with every other acknowledgement lost: no boot is lost or counted twice', async () => {
  for (const victim of order) await drill.kill(victim)
  await drill.settle()
  const result = await drill.check()
  expect(result).toMatchObject({ lost: [], miscounted: [], declaredLost: 0 })
  expect(result.ready).toBeGreaterThan(order.length)
  expect(edge.uplink.acknowledgementsLost).toBeGreaterThan(0)
})
