import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiFront, type SeenRequest } from '../lib/control-plane/api-front.ts'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const deviceCount = 3_000
/** Of the answer that brings the change of one device. */
const answerBytesMax = 2_000
const scratch = scratchDirectory()
let plane: ControlPlane
let front: ApiFront
let edge: ControlledEdge
let collectionId: string
let made = 0
/** Answers to polls that brought a state, oldest first. */
const answers: { text: string; query: URLSearchParams }[] = []

beforeAll(async () => {
  plane = await ControlPlane.start(scratch.path)
  front = new ApiFront(plane.apiUrl)
  const url = await front.open()
  front.watch((seen) => void keepState(seen))
  const { databaseUrl, webUrl } = plane
  edge = await ControlledEdge.start({ databaseUrl, webUrl, apiUrl: url }, scratch.path)
  const { organizationId, siteId, collectionId: full } = edge.tenant
  const db = createDb(databaseUrl)
  await db.device.createMany({
    data: Array.from({ length: deviceCount }, (_, index) => ({
      organizationId,
      siteId,
      collectionId: full,
      name: `seat-${index}`,
      mac: `02:bf:02:00:${hex(index >> 8)}:${hex(index & 255)}`,
    })),
  })
  await db.$disconnect()
  const nothing = await edge.api.mutate<{ id: string }>('collection.create', { siteId, name: 'Nothing to boot' })
  collectionId = nothing.id
  while (((await edge.stateInForce())?.devices.length ?? 0) < deviceCount) await pause()
})
afterAll(async () => {
  await edge?.stop()
  front?.close()
  await plane?.stop()
  scratch.remove()
})

const hex = (byte: number) => byte.toString(16).padStart(2, '0')
const pause = () => new Promise((resolve) => setTimeout(resolve, 20))
const stateFile = () => path.join(edge.data, 'state.json')

async function keepState({ name, query, answer }: SeenRequest): Promise<void> {
  if (!name.endsWith(' /edge/v1/state')) return
  const { status, text } = await answer
  if (status === 200) answers.push({ text, query })
}

/** Makes a device, and returns its address and what lets it boot. */
async function makeDevice() {
  made += 1
  const mac = `02:bf:03:00:00:${hex(made)}`
  const { id: deviceId } = await edge.api.mutate<{ id: string }>('device.create', {
    collectionId,
    name: `new-${made}`,
    mac,
  })
  const { vdiskId } = edge.tenant
  return { mac, assign: () => edge.api.mutate('device.update', { deviceId, revision: 1, vdiskId }) }
}

/** Resolves when the edge has a script for the device. */
async function untilBoots(mac: string): Promise<void> {
  for (;;) {
    if (!edge.process.isRunning) throw new Error(edge.process.output)
    const answer = await fetch(`${edge.httpUrl}/m/${mac}/boot.ipxe`)
    if (answer.ok && (await answer.text()).includes('kernel')) return
    await pause()
  }
}

/** A device gets its vDisk. @returns the answers that brought states to the edge until it boots the device */
async function changeOneDevice() {
  const { mac, assign } = await makeDevice()
  const from = answers.length
  await assign()
  await untilBoots(mac)
  return { mac, answers: answers.slice(from) }
}

const isDelta = (text: string) => 'delta' in JSON.parse(text)

/** What the control plane has signed last is on the edge's disk, byte for byte. */
async function expectSignedState(): Promise<void> {
  const db = createDb(plane.databaseUrl)
  const signed = await db.desiredState.findFirstOrThrow({ where: { edgeId: edge.edgeId } })
  await db.$disconnect()
  const kept = JSON.parse(readFileSync(stateFile(), 'utf8'))
  expect(kept).toMatchObject({ payload: signed.payload, signature: signed.signature, keyId: signed.signingKeyId })
}

test('the change of one device at a large site sends little, and the edge boots the device by it', async () => {
  const { answers: brought } = await changeOneDevice()
  expect(brought.map(({ text }) => [isDelta(text), text.length < answerBytesMax])).toEqual([[true, true]])
  expect(statSync(stateFile()).size).toBeGreaterThan(100 * answerBytesMax)
  await expectSignedState()
})

test('an edge that starts with the control plane away has the change on its disk, and takes the next one', async () => {
  const { mac } = await changeOneDevice()
  await edge.uplink.cut()
  await edge.restart()
  await untilBoots(mac)
  await edge.uplink.heal()
  const { answers: brought } = await changeOneDevice()
  expect(brought.map(({ text }) => isDelta(text))).toEqual([true])
  await expectSignedState()
})

test('an answer that was lost on its way is followed by the whole state', async () => {
  let lost = 0
  front.alter = ({ name }, text) => {
    if (lost > 0 || !name.endsWith('/state')) return text
    lost += 1
    return null
  }
  const { answers: brought } = await changeOneDevice()
  front.alter = null
  expect(lost).toBe(1)
  expect(brought.map(({ text }) => isDelta(text))).toEqual([true, false])
  await expectSignedState()
})

test('a change that was damaged is refused, and the edge requests the whole state at once', async () => {
  front.alter = (_, text) => {
    const answer = JSON.parse(text)
    if (!answer.delta) return text
    answer.delta.edits[0].insert += '1'
    return JSON.stringify(answer)
  }
  const { answers: brought } = await changeOneDevice()
  front.alter = null
  expect(brought.map(({ text, query }) => [isDelta(text), query.has('base')])).toEqual([
    [true, true],
    [false, false],
  ])
  expect(edge.process.output).toContain('the edge requests the whole state')
  await expectSignedState()
})
