import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiFront, type SeenRequest } from '../lib/control-plane/api-front.ts'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
const poll = 'POST /edge/v1/state'
const separatePoll = 'GET /edge/v1/state'
const heartbeat = 'POST /edge/v1/heartbeat'
let plane: ControlPlane
let front: ApiFront
let edge: ControlledEdge

beforeAll(async () => {
  plane = await ControlPlane.start(scratch.path)
  front = new ApiFront(plane.apiUrl)
  const url = await front.open()
  const { databaseUrl, webUrl } = plane
  edge = await ControlledEdge.start({ databaseUrl, webUrl, apiUrl: url }, scratch.path)
})
afterAll(async () => {
  await edge?.stop()
  front?.close()
  await plane?.stop()
  scratch.remove()
})

const counterOf = async () => (await edge.stateInForce())?.counter ?? 0

/** Resolves when the edge acts on a change that the dashboard makes now. */
async function changeArrives(name: string): Promise<void> {
  const before = await counterOf()
  const { siteId } = edge.tenant
  const { revision } = await edge.api.query<{ revision: number }>('site.get', { siteId })
  await edge.api.mutate('site.update', { siteId, revision, name })
  while ((await counterOf()) <= before) await new Promise((resolve) => setTimeout(resolve, 20))
}

/** Each change ends a poll: the next one is such a poll once the edge has heard of them. */
async function carriedPoll(name: string): Promise<SeenRequest> {
  let isCarried = false
  const carried = front.next(poll).then((seen) => {
    isCarried = true
    return seen
  })
  for (let count = 1; !isCarried; count++) await changeArrives(`${name} ${count}`)
  return carried
}

test('the poll of an edge carries its heartbeat, and a change ends it', async () => {
  await changeArrives('Named')
  // An edge polls before it has any state, too, and such a poll may still be on its way.
  let said = { state: { incarnation: 0 } }
  for (let turn = 1; said.state.incarnation === 0; turn++) said = JSON.parse((await carriedPoll(`Turn ${turn}`)).body)
  expect(said).toMatchObject({ devicesBooting: 0, state: { incarnation: 1 } })
  while (!(await edge.query<{ online: boolean }>()).online) await new Promise((resolve) => setTimeout(resolve, 20))
  const following = front.next(poll)
  await changeArrives('Renamed')
  await following
})

test('an edge whose poll is cut sends a heartbeat by itself, and polls with it again', async () => {
  const alone = front.next(heartbeat)
  front.cutAll()
  await alone
  await carriedPoll('Second')
})

test('an edge is served by an API of the release before, and by this one again', async () => {
  // It knows no poll with a heartbeat, and its answers to heartbeats have the state's pair alone.
  front.refuse = ({ name }) => (name === poll ? 404 : null)
  front.alter = ({ name }, text) => (name === heartbeat ? JSON.stringify({ state: JSON.parse(text).state }) : text)
  const separate = front.next(separatePoll)
  front.cutAll()
  await separate
  await front.next(heartbeat)
  await changeArrives('Renamed again')
  front.refuse = null
  front.alter = null
  await carriedPoll('Third')
})
