import { beforeEach, expect, test } from 'vitest'
import type { EdgeClient } from '../../test/edge-client.ts'
import { PlacedSite } from '../../test/placed-site.ts'
import { startTestApi } from '../../test/test-api.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { VdiskDetail } from '../vdisk/schema.ts'
import type { ChangedVersion, VersionPreview } from '../vdisk/version-schema.ts'
import { advancePromotions } from './advance-promotions.ts'
import type { PromotedVersion, PromotionView } from './schema.ts'

const dayMs = 86_400_000
const site = useTestSite('admin')
let placed: PlacedSite
/** The version that devices boot, at both edges. */
let first: string
/** In test, at the edge that made it. */
let next: string
let maker: EdgeClient
let second: EdgeClient

beforeEach(async () => {
  ;({ placed, first, maker, second } = await PlacedSite.withTwoEdges(site()))
  next = await placed.makeVersion(2, first, { state: 'test' })
  await placed.hold(maker, first, next)
  await placed.hold(second, first)
})

const vdisk = () => site().query<VdiskDetail>('vdisk.get', { vdiskId: site().tenant.vdiskId })
const booted = async () => (await site().state(maker)).devices[0]?.versionId
const promotion = async () =>
  (await site().query<{ promotion: PromotionView | null }>('version.promotion', { vdiskId: site().tenant.vdiskId }))
    .promotion
const change = async (path: string, input: object) =>
  site().mutate<PromotedVersion>(path, Object.assign({ vdiskRevision: (await vdisk()).revision }, input))
const tryChange = async (path: string, input: object) =>
  site().tryMutation(path, Object.assign({ vdiskRevision: (await vdisk()).revision }, input))
const cancel = async () =>
  site().tryMutation('version.cancelPromotion', {
    vdiskId: site().tenant.vdiskId,
    revision: (await vdisk()).revision,
  })
/** One run of the job, in this or another process. */
const advance = ({ serverDb: db, clock } = site().api) => advancePromotions({ db, clock: clock.read })
const entries = (action: string) =>
  site().api.db.auditEntry.findMany({ where: { action, objectId: site().tenant.vdiskId }, orderBy: { at: 'asc' } })

test('a promotion waits, shows its progress, and is done by any process once the last edge reports its copy', async () => {
  expect(await change('version.promote', { versionId: next })).toMatchObject({ number: 2, isWaiting: true })
  await advance()
  expect(await booted()).toBe(first)
  expect(await promotion()).toMatchObject({
    versionId: next,
    number: 2,
    step: 'promote',
    givenUp: null,
    heldCount: 1,
    lackingCount: 1,
    lacking: [{ edgeId: second.edgeId, isOnline: true, state: 'lacks', waitsFor: 'packing' }],
  })
  const [pack] = await placed.jobsOf(maker)
  await placed.end(maker, pack)
  const [fetch] = await placed.jobsOf(second)
  await placed.end(second, fetch, { state: 'running', progressBytes: 300, totalBytes: 1000 })
  expect((await promotion())?.lacking).toMatchObject([{ state: 'fetching', progressBytes: 300, totalBytes: 1000 }])
  await advance()
  expect(await booted()).toBe(first)
  await placed.end(second, fetch)
  await placed.hold(second, first, next)
  const beside = await startTestApi({ beside: site().api })
  await Promise.all([advance(), advance(beside), advance(), advance(beside)])
  await beside.close()
  expect(await booted()).toBe(next)
  expect(await promotion()).toBeNull()
  expect(await entries('version.promote')).toMatchObject([
    { after: { promotion: { version: 2, step: 'promote', lackingCount: 1 } } },
    { actorName: 'promotions that wait', before: { default: null }, after: { default: 2, promotion: null } },
  ])
})

test('nothing waits where all edges hold the version, and a promotion proceeds by choice', async () => {
  const third = await placed.makeVersion(3, next, { state: 'test' })
  await placed.hold(maker, first, next, third)
  await placed.hold(second, first, next)
  expect(await change('version.promote', { versionId: next })).toMatchObject({ isWaiting: false })
  expect(await booted()).toBe(next)
  expect(await change('version.promote', { versionId: third })).toMatchObject({ isWaiting: true })
  expect(await change('version.promote', { versionId: third, waitForPlacement: false })).toMatchObject({
    isWaiting: false,
  })
  expect([await booted(), await promotion()]).toEqual([third, null])
  expect(await entries('version.cancelPromotion')).toEqual([])
})

test('a revert is done at once, unless it is to wait', async () => {
  await change('version.promote', { versionId: next, waitForPlacement: false })
  await placed.hold(second, next)
  expect(await change('version.revert', { versionId: first, waitForPlacement: true })).toMatchObject({
    isWaiting: true,
  })
  expect(await promotion()).toMatchObject({ versionId: first, step: 'revert' })
  expect(await booted()).toBe(next)
  await placed.hold(second, first, next)
  await advance()
  expect([await booted(), await promotion()]).toEqual([first, null])
  await placed.hold(second, first)
  expect(await change('version.revert', { versionId: next })).toMatchObject({ isWaiting: false })
  expect(await booted()).toBe(next)
})

test('a promotion that waits is cancelled, once', async () => {
  await change('version.promote', { versionId: next })
  const { vdiskId } = site().tenant
  const { revision } = await vdisk()
  const stale = await site().tryMutation('version.cancelPromotion', { vdiskId, revision: revision - 1 })
  expect([stale.status, stale.text]).toEqual([409, expect.stringContaining('changed promotion')])
  expect(await cancel()).toMatchObject({ status: 200 })
  const again = await cancel()
  expect([again.status, again.text]).toEqual([409, expect.stringContaining('No promotion of this vDisk waits.')])
  await placed.hold(second, first, next)
  await advance()
  expect([await booted(), await promotion()]).toEqual([first, null])
  expect(await entries('version.cancelPromotion')).toMatchObject([{ after: { promotion: null } }])
})

test('the newest decision holds: what another one overtakes is cancelled, and said before', async () => {
  const third = await placed.makeVersion(3, next, { state: 'test' })
  await change('version.promote', { versionId: next })
  const preview = (versionId: string) =>
    site().query<VersionPreview>('version.preview', { versionId, action: 'promote' })
  expect(await preview(third)).toMatchObject({ cancelsPromotionOf: 2 })
  expect(await preview(next)).toMatchObject({ cancelsPromotionOf: null })
  // Who has not seen that it waits learns of it.
  const { revision } = await vdisk()
  const late = await site().tryMutation('version.promote', { versionId: third, vdiskRevision: revision - 1 })
  expect(late.status).toBe(409)
  expect(await change('version.promote', { versionId: third })).toMatchObject({ isWaiting: true })
  expect(await promotion()).toMatchObject({ number: 3 })
  await change('version.promote', { versionId: next, waitForPlacement: false })
  expect([await booted(), await promotion()]).toEqual([next, null])
  expect(await entries('version.cancelPromotion')).toMatchObject([
    { before: { promotion: { version: 3, step: 'promote' } }, after: { reason: 'another version became the default' } },
  ])
})

test('of two people at once one starts to wait, and the other is told', async () => {
  const third = await placed.makeVersion(3, next, { state: 'test' })
  const { revision: vdiskRevision } = await vdisk()
  const answers = await Promise.all(
    [next, third].map((versionId) => site().tryMutation('version.promote', { versionId, vdiskRevision })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  expect(await site().api.db.waitingPromotion.count({ where: { vdiskId: site().tenant.vdiskId } })).toBe(1)
})

test('a release at a set time and one that waits do not mix', async () => {
  const third = await placed.makeVersion(3, next, { state: 'test' })
  const releaseAt = new Date(site().api.clock.now.getTime() + dayMs).toISOString()
  const both = await tryChange('version.promote', { versionId: next, releaseAt, waitForPlacement: true })
  expect([both.status, both.text]).toEqual([400, expect.stringContaining('edges switch by their own clocks')])
  await change('version.promote', { versionId: next })
  const other = await tryChange('version.promote', { versionId: third, releaseAt })
  expect([other.status, other.text]).toEqual([
    409,
    expect.stringContaining('Version 2 waits for its copies at edges: cancel its promotion first.'),
  ])
  expect(await change('version.promote', { versionId: next, releaseAt })).toMatchObject({ isWaiting: false })
  expect(await promotion()).toBeNull()
  const waiting = await tryChange('version.promote', { versionId: third })
  expect([waiting.status, waiting.text]).toEqual([409, expect.stringContaining('Version 2 is to be released at')])
})

test('a version that waits cannot be deleted; that the default is deleted changes nothing for it', async () => {
  await change('version.promote', { versionId: next })
  const held = await site().tryMutation('vdisk.removeVersion', { versionId: next })
  expect([held.status, held.text]).toEqual([
    409,
    expect.stringMatching(/waiting promotion of Linux.*cancel its promotion/s),
  ])
  const { organizationId, vdiskId } = site().tenant
  await site().api.db.device.updateMany({ where: { organizationId }, data: { vdiskId: null } })
  await site().api.db.collection.updateMany({ where: { organizationId }, data: { vdiskId: null } })
  const older = await placed.makeVersion(4, null)
  await site().mutate('vdisk.removeVersion', { versionId: older })
  expect(await promotion()).toMatchObject({ number: 2 })
  await cancel()
  expect(await site().tryMutation('vdisk.removeVersion', { versionId: next })).toMatchObject({ status: 200 })
  expect(await site().api.db.waitingPromotion.count({ where: { vdiskId } })).toBe(0)
})

test.each(['revoked', 'left out'])('an edge that is %s holds it up no longer', async (how) => {
  await change('version.promote', { versionId: next })
  site().api.clock.advance(10 * 60_000)
  await placed.hear(maker)
  expect((await promotion())?.lacking).toMatchObject([{ isOnline: false, waitsFor: 'edge_offline' }])
  await advance()
  expect(await booted()).toBe(first)
  if (how === 'revoked') await site().revokeEdge(second.edgeId)
  else
    await site().mutate('placement.set', {
      vdiskId: site().tenant.vdiskId,
      revision: 1,
      rules: { others: { edges: 1 } },
    })
  await advance()
  expect([await booted(), await promotion()]).toEqual([next, null])
})

test('it waits for seven days or as long as asked, is given up then and shown, and can be tried again', async () => {
  const { clock } = site().api
  const inMs = (ms: number) => new Date(clock.now.getTime() + ms).toISOString()
  for (const [waitUntil, text] of [
    [inMs(-1), 'lies in the past'],
    [inMs(32 * dayMs), 'at most 31 days'],
  ])
    expect(await tryChange('version.promote', { versionId: next, waitUntil })).toMatchObject({
      status: 400,
      text: expect.stringContaining(text ?? ''),
    })
  const input = { versionId: next, waitUntil: inMs(dayMs), waitForPlacement: false }
  expect(await tryChange('version.promote', input)).toMatchObject({ status: 400 })
  await change('version.promote', { versionId: next })
  expect(await promotion()).toMatchObject({ until: inMs(7 * dayMs) })
  clock.advance(7 * dayMs - 1)
  await advance()
  expect(await promotion()).toMatchObject({ givenUp: null })
  clock.advance(1)
  await advance()
  const givenUp = { at: clock.now.toISOString(), reason: 'An edge did not get version 2 in time.' }
  expect(await promotion()).toMatchObject({ givenUp, lacking: [{ edgeId: second.edgeId }] })
  expect(await entries('version.giveUpPromotion')).toMatchObject([{ after: { reason: givenUp.reason } }])
  await placed.hold(second, first, next)
  await advance()
  expect(await booted()).toBe(first)
  expect(await change('version.promote', { versionId: next })).toMatchObject({ isWaiting: false })
  expect([await booted(), await promotion()]).toEqual([next, null])
})

test('one that was given up can be dismissed, and holds nothing', async () => {
  await change('version.promote', { versionId: next })
  site().api.clock.advance(7 * dayMs)
  await advance()
  expect((await promotion())?.givenUp).not.toBeNull()
  expect(await cancel()).toMatchObject({ status: 200 })
  expect(await promotion()).toBeNull()
})

test('the version that waits gets to edges before others', async () => {
  // Of a chain above the default, the last one waits.
  const third = await placed.makeVersion(3, next, { state: 'test' })
  await placed.hold(maker, first, next, third)
  const { name } = await site().mutate<ChangedVersion>('version.promote', {
    versionId: third,
    vdiskRevision: (await vdisk()).revision,
  })
  expect(name).toBe('Linux version 3')
  const packs = await placed.jobsOf(maker)
  expect(packs.map(({ versionId }) => versionId)).toContain(third)
})
