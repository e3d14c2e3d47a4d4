import { randomUUID } from 'node:crypto'
import type { StoredVersion, StoreJobReport, StoreMessage } from '@bootfarm/proto/uplink'
import { beforeEach, expect, test } from 'vitest'
import type { EdgeClient } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import type { EdgeImageView } from '../../store/schema.ts'
import type { StoreJobView } from '../../store-job/schema.ts'
import type { VdiskDetail } from '../../vdisk/schema.ts'
import type { VersionWithJobs } from '../../vdisk/version-schema.ts'

const site = useTestSite('image_manager')
const rootOf = (byte: number) => Buffer.alloc(32, byte).toString('base64')
const store = { id: randomUUID(), publicKey: rootOf(9), format: 1 }
const sizes = { ownBytes: 5, sharedBytes: 7, reclaimableBytes: 3 }
const facts = { name: 'Lab by hand', sizeBytes: 1024, createdUnixMs: 1_795_000_000_000, hasKernel: true }
let scan = 0

async function say(message: Partial<StoreMessage>, edge: EdgeClient = site().edge): Promise<void> {
  const body = JSON.stringify({ store, jobs: [], ...message })
  const answer = await edge.send({ method: 'POST', path: '/edge/v1/store', body })
  expect([answer.status, answer.body]).toEqual([200, expect.anything()])
}
const image = (more: Partial<StoredVersion> = {}): StoredVersion => ({
  versionId: randomUUID(),
  state: 'present',
  root: rootOf(4),
  image: facts,
  ...sizes,
  ...more,
})
/** All that the store holds. */
const holds = (versions: StoredVersion[], edge?: EdgeClient) => {
  scan += 1
  return say({ inventory: { scan, isLast: true, versions } }, edge)
}
const speakUp = (...kinds: string[]) =>
  site().edge.heartbeat({ storeJobKinds: ['verify', ...kinds], agentVersion: '9.9' })

const images = async (edge: EdgeClient = site().edge) =>
  (await site().query<{ items: EdgeImageView[] }>('edge.images', { edgeId: edge.edgeId })).items
const inputOf = (versionId: string, more: object = {}) => ({
  edgeId: site().edge.edgeId,
  versionId,
  vdiskId: site().tenant.vdiskId,
  ...more,
})
const adopt = (versionId: string, more?: object) =>
  site().mutate<VersionWithJobs>('version.adopt', inputOf(versionId, more))
const tryAdopting = (versionId: string, more?: object) => site().tryMutation('version.adopt', inputOf(versionId, more))
const newVdisk = (name: string) => ({ vdiskId: null, farmId: site().tenant.farmId, name })
const version = async (id: string, vdiskId = site().tenant.vdiskId) =>
  (await site().query<VdiskDetail>('vdisk.get', { vdiskId })).versions.find((one) => one.id === id)
const job = (jobId: string | undefined) => site().query<StoreJobView>('storeJob.get', { jobId })
const end = (id: string | undefined, more: Partial<StoreJobReport>) =>
  say({ jobs: [{ id: id ?? '', state: 'done', progressBytes: 9, totalBytes: 0, ...more }] })
const kernel = { sha256: 'ab'.repeat(32), sizeBytes: 4096 }
const foundOf = (versionId: string, root = rootOf(4)) => ({
  made: { versionId, root, counter: 6, sizeBytes: 1024, commandLine: 'root=LABEL=x', kernel },
})

beforeEach(async () => {
  scan = 0
  await speakUp('adopt')
})

test('what an edge holds that is no version here is listed with what its manifest says, until it is gone', async () => {
  const one = image()
  const layer = image({ isLayer: true, image: undefined, root: undefined })
  await holds([one, layer, image({ versionId: site().tenant.versionId })])
  expect(await images()).toEqual([
    {
      versionId: one.versionId,
      state: 'present',
      sizeBytes: 1024,
      hasKernel: true,
      ...sizes,
      madeAt: '2026-11-18T11:06:40.000Z',
      parent: null,
      problem: null,
      untrusted: { name: 'Lab by hand' },
      reportedAt: expect.any(String),
    },
  ])
  await holds([])
  expect(await images()).toEqual([])
})

test('images are read page by page, and an edge fills no more than its share', async () => {
  const all = Array.from({ length: 5 }, () => image())
  await holds(all)
  const found: string[] = []
  let cursor: string | null = null
  do {
    const page: { items: EdgeImageView[]; nextCursor: string | null } = await site().query('edge.images', {
      edgeId: site().edge.edgeId,
      limit: 2,
      cursor,
    })
    found.push(...page.items.map(({ versionId }) => versionId))
    cursor = page.nextCursor
  } while (cursor)
  expect(found).toEqual(all.map(({ versionId }) => versionId).sort())
  for (let page = 0; page < 10; page += 1) {
    const versions = Array.from({ length: 256 }, () => image())
    await say({ inventory: { scan: 100, isLast: false, versions } })
  }
  const { organizationId } = site().tenant
  const count = await site().api.db.edgeImage.count({ where: { organizationId } })
  expect(count).toBeLessThan(2048 + 256)
})

test('an adopted image is a version under the id that it has at its edge, once the edge has read it through', async () => {
  const { versionId } = image()
  await holds([image({ versionId })])
  const made = await adopt(versionId, { state: 'released', note: 'of the lab' })
  expect(made).toMatchObject({ id: versionId, number: 2 })
  const { vdiskId } = site().tenant
  expect((await site().state()).storeJobs).toEqual([
    { id: made.jobIds[0], kind: 'adopt', vdiskId, versionId, number: 2 },
  ])
  expect(await version(versionId)).toMatchObject({ sealedAt: null, access: null })
  // It is no image of nobody's any more, and no second one either.
  expect(await images()).toEqual([])
  expect((await tryAdopting(versionId)).text).toContain('It is already being adopted as version 2 of Linux')
  await end(made.jobIds[0], foundOf(versionId))
  expect(await version(versionId)).toMatchObject({
    access: 'default',
    sizeBytes: 1024,
    commandLine: 'root=LABEL=x',
    kernel,
    note: 'of the lab',
    manifest: { root: rootOf(4), counter: 6 },
    atEdges: [{ state: 'present', ...sizes }],
  })
  await holds([image({ versionId })])
  expect(await images()).toEqual([])
  expect(await tryAdopting(versionId)).toMatchObject({
    status: 409,
    text: expect.stringContaining('It is already version 2 of Linux'),
  })
})

test('it becomes the first version of a new vDisk where that is asked for', async () => {
  const { versionId } = image()
  await holds([image({ versionId })])
  const made = await adopt(versionId, newVdisk('From the lab'))
  expect(made).toMatchObject({ number: 1, name: 'From the lab version 1' })
  const { items } = await site().query<{ items: { id: string; name: string }[] }>('vdisk.list', {
    search: 'From the lab',
  })
  await end(made.jobIds[0], foundOf(versionId))
  expect(await version(versionId, items[0]?.id)).toMatchObject({ access: 'test', number: 1 })
})

test('an update that was imported by hand follows its parent, once that was adopted', async () => {
  const [base, update] = [image(), image()]
  update.image = { ...facts, parentVersionId: base.versionId }
  await holds([base, update])
  const made = await adopt(base.versionId)
  await end(made.jobIds[0], foundOf(base.versionId))
  const { vdiskId } = site().tenant
  expect(await images()).toMatchObject([{ parent: { vdiskId, vdiskName: 'Linux', number: 2 } }])
  await adopt(update.versionId)
  expect(await version(update.versionId)).toMatchObject({ parentVersionId: base.versionId })
})

test('an adoption that fails, or is cancelled, leaves the image as it was, and nothing is deleted', async () => {
  const { versionId } = image()
  await holds([image({ versionId })])
  const failed = await adopt(versionId)
  await end(failed.jobIds[0], { state: 'failed', message: 'a block is damaged' })
  expect(await job(failed.jobIds[0])).toMatchObject({
    state: 'failed',
    kind: 'adopt',
    untrusted: { message: 'a block is damaged' },
  })
  expect(await version(versionId)).toBeUndefined()
  expect(await images()).toMatchObject([{ versionId, problem: null }])
  const cancelled = await adopt(versionId)
  await site().mutate('storeJob.cancel', { jobId: cancelled.jobIds[0] })
  expect(await site().state()).not.toHaveProperty('storeJobs')
  // An inventory in between does not take it off the list.
  const third = await adopt(versionId)
  await holds([image({ versionId })])
  await site().mutate('storeJob.cancel', { jobId: third.jobIds[0] })
  expect(await images()).toMatchObject([{ versionId, problem: null }])
})

test('other bytes than were shown are not adopted', async () => {
  const { versionId } = image()
  await holds([image({ versionId })])
  const made = await adopt(versionId)
  await end(made.jobIds[0], foundOf(versionId, rootOf(5)))
  expect(await job(made.jobIds[0])).toMatchObject({
    state: 'failed',
    untrusted: { message: expect.stringContaining('different data under its name') },
  })
  expect(await version(versionId)).toBeUndefined()
})

test('of two who adopt it at once one does, into whichever vDisk', async () => {
  const { versionId } = image()
  await holds([image({ versionId })])
  const answers = await Promise.all(['One', 'Two', 'Three'].map((name) => tryAdopting(versionId, newVdisk(name))))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409])
  for (const { status, text } of answers)
    if (status === 409) expect(text).toMatch(/It is already being adopted as|Someone else has just adopted it/)
  // Nothing is left of those who came second.
  const { items } = await site().query<{ items: object[] }>('vdisk.list', {})
  expect(items).toHaveLength(2)
})

test.each([
  ['is being imported', { state: 'importing', root: undefined, image: undefined }, 'still being imported'],
  ['is damaged', { state: 'damaged', root: undefined, image: undefined }, 'The image is damaged'],
  ['was created for another organization', { image: { ...facts, organizationId: randomUUID() } }, 'for another'],
] as const)('one that %s is refused, and the list says why', async (_what, more, why) => {
  const one = image(more)
  await holds([one])
  const refused = await tryAdopting(one.versionId)
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining(why)])
  expect(await images()).toMatchObject([{ problem: expect.stringContaining(why) }])
})

test('one that its edge is asked to delete, or whose edge does no such work, is refused', async () => {
  const { versionId } = image()
  await holds([image({ versionId })])
  await speakUp()
  const old = await tryAdopting(versionId)
  expect([old.status, old.text]).toEqual([409, expect.stringContaining('does not support adopt. Update it')])
  expect(await images()).toMatchObject([{ problem: expect.stringContaining('does not support adopt') }])
  await speakUp('adopt')
  const { organizationId } = site().tenant
  const asked = { edgeId: site().edge.edgeId, kind: 'delete', versionId, askedByName: 'x' } as const
  await site().api.db.storeJob.create({ data: { organizationId, ...asked, askedAt: new Date() } })
  const deleted = await tryAdopting(versionId)
  expect([deleted.status, deleted.text]).toEqual([409, expect.stringContaining('is deleting it')])
})

test('one whose version lies in the trash is restored from there', async () => {
  const { versionId } = image()
  await holds([image({ versionId })])
  const made = await adopt(versionId)
  await end(made.jobIds[0], foundOf(versionId))
  await site().mutate('vdisk.removeVersion', { versionId })
  await holds([image({ versionId })])
  expect(await images()).toEqual([])
  const refused = await tryAdopting(versionId)
  expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('is in the trash')])
})

test('what the edge has not named, another farm and half a wish are refused', async () => {
  const { versionId } = image()
  await holds([image({ versionId })])
  expect((await tryAdopting(randomUUID())).status).toBe(404)
  const { id: farmId } = await site().api.db.farm.create({
    data: { organizationId: site().tenant.organizationId, name: 'Other farm' },
    select: { id: true },
  })
  const elsewhere = await site().api.db.vdisk.create({
    data: { organizationId: site().tenant.organizationId, farmId, name: 'Elsewhere' },
    select: { id: true },
  })
  for (const more of [{ vdiskId: elsewhere.id }, { vdiskId: null, farmId, name: 'New' }]) {
    const refused = await tryAdopting(versionId, more)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('belongs to another farm')])
  }
  for (const more of [{ vdiskId: null }, { vdiskId: null, farmId }, { farmId, name: 'Both' }]) {
    const refused = await tryAdopting(versionId, more)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('say either a vDisk')])
  }
  expect((await tryAdopting(versionId, newVdisk('Linux'))).status).toBe(409)
})
