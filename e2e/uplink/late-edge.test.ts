import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { StreamDevice } from '../lib/device/stream-device.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { EdgePair } from '../lib/edge/edge-pair.ts'
import { edgeAddress } from '../lib/edge/loopback-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
let plane: ControlPlane
let pair: EdgePair
let third: ControlledEdge | undefined
let device: StreamDevice | undefined

beforeAll(async () => {
  plane = await ControlPlane.start(scratch.path)
  pair = await EdgePair.start(plane, scratch.path)
})
afterAll(async () => {
  device?.close()
  await third?.stop()
  await pair?.stop()
  await plane?.stop()
  scratch.remove()
})

const streamOf = ({ ports }: ControlledEdge) => `${edgeAddress}:${ports.stream}`
const welcomeOf = (answer: Awaited<ReturnType<StreamDevice['hello']>>) => {
  if (typeof answer === 'string') throw new Error(`the edge refuses: ${answer}`)
  return answer
}

test('a running device learns of an edge that the site got later, and fails over to it when all others are gone', async () => {
  const { own, other } = pair
  device = await StreamDevice.boot(own.httpUrl, own.tenant.macs[0] ?? '')
  expect(welcomeOf(await device.hello()).failover?.edges).toEqual([streamOf(other)])
  // It has the complete state.
  expect(await device.report()).toBe('report_ack')

  third = await ControlledEdge.start(plane, path.join(scratch.path, 'third'), [], own)
  const late = streamOf(third)
  await own.process.waitFor(new RegExp(`Edge ${third.edgeId} of this site is heard`))
  await other.process.waitFor(new RegExp(`Edge ${third.edgeId} of this site is heard`))

  // The other edges hear it and know its stream, as its heartbeat reports.
  await pair.until(async () => {
    const { siteEdges } = (await own.stateInForce()) ?? {}
    return siteEdges?.edges.some(({ id, streamPort }) => id === third?.edgeId && streamPort !== null) ?? false
  })
  expect(await device.report()).toBe('no_session')
  const { failover } = welcomeOf(await device.hello())
  expect(failover?.edges.toSorted()).toEqual([streamOf(other), late].toSorted())
  // Once: known facts are not sent again.
  expect(await device.report()).toBe('report_ack')

  for (const edge of [own, other]) {
    edge.process.kill('SIGKILL')
    await edge.process.ended
  }
  welcomeOf(await device.goOnAt(late))
  const disk = readFileSync(path.join(third.data, 'store/disk'))
  for (const sector of [0, 63])
    expect(await device.read(sector)).toEqual(disk.subarray(sector * 512, sector * 512 + 512))
  const boots = async () =>
    (await own.api.query<{ items: { id: string }[] }>('boot.list', {})).items.map(({ id }) => id)
  const get = async () => {
    const [bootId] = await boots()
    return own.api.query<{ edgeId: string; handOver: unknown }>('boot.get', { bootId })
  }
  while ((await get()).handOver === null) {
    if (!third.process.isRunning) throw new Error(third.process.output)
    await pause(50)
  }
  expect(await get()).toMatchObject({ edgeId: own.edgeId, handOver: { edgeId: third.edgeId, count: 1 } })
  expect(await boots()).toHaveLength(1)
})
