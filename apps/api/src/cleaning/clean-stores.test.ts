import { beforeEach, expect, test } from 'vitest'
import { PlacedSite } from '../../test/placed-site.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import { cleanStores } from './clean-stores.ts'
import type { CleaningView } from './schema.ts'

const site = useTestSite('image_manager')

const hourMs = 3_600_000
/** Berlin is an hour ahead: the window from 01:00 to 05:00 is open. */
const night = new Date('2026-11-21T00:30:00Z')

beforeEach(async () => {
  site().api.clock.now = night
  await hear()
  await new PlacedSite(site()).hold(site().edge)
})

async function hear(kinds = ['gc', 'delete']) {
  expect((await site().edge.heartbeat({ storeJobKinds: kinds })).status).toBe(200)
}

const edgeId = () => site().edge.edgeId
const run = () => cleanStores({ db: site().api.serverDb, clock: site().api.clock.read })
const get = () => site().query<CleaningView>('cleaning.get', { edgeId: edgeId() })
const set = (input: object, cookie = site().cookie) =>
  site().tryMutation('cleaning.set', Object.assign({ edgeId: edgeId() }, input), cookie)
const cleanings = () =>
  site().api.db.storeJob.findMany({
    where: { organizationId: site().tenant.organizationId, kind: 'gc' },
    orderBy: { askedAt: 'asc' },
  })

/** Of something that leaves data. */
async function endJob(kind: 'delete' | 'verify' | 'import', state: 'done' | 'failed' = 'done') {
  const { organizationId } = site().tenant
  const now = site().api.clock.now
  const times = { askedAt: now, startedAt: now, endedAt: now }
  await site().api.db.storeJob.create({
    data: { organizationId, edgeId: edgeId(), kind, state, askedByName: 'x', ...times },
  })
}

async function endCleaning(state: 'done' | 'failed' = 'done') {
  const job = (await cleanings()).at(-1)
  const store = { id: edgeId(), publicKey: Buffer.alloc(32, 9).toString('base64'), format: 1 }
  const report = { id: job?.id, state, progressBytes: 9, totalBytes: 9, message: 'freed 2.6 GiB' }
  const body = JSON.stringify({ store, jobs: [report] })
  expect((await site().edge.send({ method: 'POST', path: '/edge/v1/store', body })).status).toBe(200)
}

test('a store is cleaned once in the night after something was deleted, and says what that freed', async () => {
  await run()
  expect(await cleanings()).toEqual([])
  expect(await get()).toMatchObject({
    mode: 'after_deletions',
    window: { from: '01:00', to: '05:00' },
    isDue: false,
    last: null,
  })
  await endJob('verify')
  expect(await get()).toMatchObject({ isDue: false })
  await endJob('delete')
  expect(await get()).toMatchObject({ isDue: true })
  await Promise.all([run(), run()])
  await run()
  expect(await cleanings()).toMatchObject([{ state: 'queued', askedByName: 'cleaning of stores' }])
  expect(await get()).toMatchObject({ isDue: false, last: { state: 'queued', endedAt: null } })
  await endCleaning()
  expect(await get()).toMatchObject({ last: { state: 'done', untrusted: { message: 'freed 2.6 GiB' } } })
  const { organizationId } = site().tenant
  expect(await site().api.db.auditEntry.count({ where: { organizationId, action: 'store_job.gc' } })).toBe(1)
  site().api.clock.advance(24 * hourMs)
  await hear()
  await run()
  expect(await cleanings()).toHaveLength(1)
})

test('a failed cleaning is tried again in the next night, and an import that failed leaves data, too', async () => {
  await endJob('import', 'failed')
  await run()
  await endCleaning('failed')
  site().api.clock.advance(hourMs)
  await hear()
  await run()
  expect(await cleanings()).toHaveLength(1)
  site().api.clock.advance(23 * hourMs)
  await hear()
  await run()
  expect(await cleanings()).toHaveLength(2)
})

test('outside of its window, away, or without the ability a store is not cleaned', async () => {
  await endJob('delete')
  site().api.clock.now = new Date('2026-11-20T12:00:00Z')
  await hear()
  await run()
  site().api.clock.now = new Date(night.getTime() + 2 * 60_000)
  await run()
  await hear(['verify'])
  await run()
  expect(await cleanings()).toEqual([])
  await hear()
  await run()
  expect(await cleanings()).toHaveLength(1)
})

test('a store can be cleaned each day, at any time, or never; each choice is audited', async () => {
  const { revision } = await get()
  expect((await set({ revision, mode: 'off', window: null })).status).toBe(200)
  await endJob('delete')
  await run()
  expect(await cleanings()).toEqual([])
  expect(await set({ revision, mode: 'daily', window: null })).toMatchObject({ status: 409 })
  expect((await set({ revision: revision + 1, mode: 'daily', window: null })).status).toBe(200)
  expect(await get()).toMatchObject({ revision: revision + 2, mode: 'daily', window: null, isDue: true })
  site().api.clock.now = new Date('2026-11-21T12:00:00Z')
  await hear()
  await run()
  await endCleaning()
  await run()
  expect(await cleanings()).toHaveLength(1)
  site().api.clock.advance(21 * hourMs)
  await hear()
  await run()
  expect(await cleanings()).toHaveLength(2)
  const { organizationId } = site().tenant
  expect(await site().api.db.auditEntry.count({ where: { organizationId, action: 'cleaning.set' } })).toBe(2)
})

test('a wrong window is refused, and so is a choice of somebody who only reads', async () => {
  const { revision } = await get()
  for (const window of [{ from: '1:00', to: '05:00' }, { from: '01:00', to: '01:00' }, { from: '01:00' }])
    expect((await set({ revision, mode: 'daily', window })).status).toBe(400)
  expect((await set({ revision, mode: 'weekly', window: null })).status).toBe(400)
  const viewer = await signInAs(site().api, site().tenant.organizationId, 'viewer')
  expect((await set({ revision, mode: 'off', window: null }, viewer)).status).toBe(403)
})
