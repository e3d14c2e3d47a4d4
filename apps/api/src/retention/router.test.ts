import { beforeEach, expect, test } from 'vitest'
import { PlacedSite } from '../../test/placed-site.ts'
import { useTestSite } from '../../test/test-site.ts'
import { signInAs } from '../../test/test-tenant.ts'
import type { RetentionPreview, RetentionView } from './schema.ts'

const site = useTestSite('admin')

beforeEach(async () => {
  const placed = new PlacedSite(site())
  for (const number of [2, 3, 4]) await placed.makeVersion(number, null)
})

const get = () => site().query<RetentionView>('retention.get', { vdiskId: site().tenant.vdiskId })
const set = (input: object, cookie = site().cookie) =>
  site().tryMutation('retention.set', Object.assign({ vdiskId: site().tenant.vdiskId }, input), cookie)

test('retention is off until somebody chooses it, and each choice is in the audit log', async () => {
  const first = await get()
  expect(first).toEqual({ revision: first.revision, keptReleases: null, trashDays: 7 })
  expect((await set({ revision: first.revision, keptReleases: 3, trashDays: 1 })).status).toBe(200)
  expect(await get()).toEqual({ revision: first.revision + 1, keptReleases: 3, trashDays: 1 })
  // Somebody else has not seen it.
  expect(await set({ revision: first.revision, keptReleases: null })).toMatchObject({
    status: 409,
    text: expect.stringContaining('changed in the meantime'),
  })
  const { organizationId, vdiskId } = site().tenant
  const audited = await site().api.db.auditEntry.findMany({ where: { organizationId, action: 'retention.set' } })
  expect(audited).toMatchObject([
    { objectId: vdiskId, before: { keptReleases: null, trashDays: 7 }, after: { keptReleases: 3, trashDays: 1 } },
  ])
})

test('numbers that cannot be are refused, and so is a choice of somebody who only reads', async () => {
  const { revision } = await get()
  for (const [input, why] of [
    [{ keptReleases: 0 }, 'Keep at least one'],
    [{ keptReleases: 1001 }, 'At most 1000'],
    [{ keptReleases: 2, trashDays: 31 }, 'at most 30 days'],
    [{ keptReleases: 2, trashDays: -1 }, ''],
  ] as const)
    expect(await set(Object.assign({ revision }, input))).toMatchObject({
      status: 400,
      text: expect.stringContaining(why),
    })
  const viewer = await signInAs(site().api, site().tenant.organizationId, 'viewer')
  expect((await set({ revision, keptReleases: 1 }, viewer)).status).toBe(403)
  expect(await get()).toMatchObject({ revision, keptReleases: null })
})

test('a preview says what goes and why the others stay, and changes nothing', async () => {
  const edge = await new PlacedSite(site()).enrol()
  const { organizationId, vdiskId, versionId } = site().tenant
  const versions = await site().api.db.vdiskVersion.findMany({
    where: { organizationId, vdiskId },
    orderBy: { number: 'asc' },
  })
  await new PlacedSite(site()).hold(edge, ...versions.map(({ id }) => id))
  const preview = await site().query<RetentionPreview>('retention.preview', { vdiskId, keptReleases: 2 })
  expect(preview.versions.map(({ number, goes, reasons }) => [number, goes, reasons.map(({ kind }) => kind)])).toEqual([
    [4, false, ['default']],
    [3, false, ['newest']],
    [2, true, []],
    [1, true, []],
  ])
  expect(preview.versions.at(-1)?.versionId).toBe(versionId)
  expect(preview.edges).toMatchObject([{ edgeId: edge.edgeId, versionCount: 2, reclaimableBytes: 6 }])
  expect(await get()).toMatchObject({ keptReleases: null })
  expect((await site().query<{ items: object[] }>('trash.list', {})).items).toEqual([])
})
