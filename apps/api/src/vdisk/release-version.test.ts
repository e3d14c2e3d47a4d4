import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { mutate } from '../../test/test-client.ts'
import { createTenant, signInAs } from '../../test/test-tenant.ts'

let api: TestApi
const statements: string[] = []

beforeAll(async () => {
  api = await startTestApi({ onQuery: ({ text }) => statements.push(text) })
})
afterAll(() => api.close())

/** @returns the statements of each change of a vDisk that so many sites boot, once all of them are to be woken */
async function statementsAt(siteCount: number): Promise<Record<string, number>> {
  const tenant = await createTenant(api, `sites-${siteCount}`)
  const { organizationId, farmId, vdiskId, versionId } = tenant
  const cookie = await signInAs(api, organizationId, 'image_manager')
  const files = { sizeBytes: 512, diskPath: 'a/2/disk.raw', commandLine: '' }
  await api.db.vdiskVersion.create({ data: { organizationId, vdiskId, number: 2, ...files } })
  const names = Array.from({ length: siteCount - 1 }, (_, index) => `Site ${index}`)
  await api.db.site.createMany({ data: names.map((name) => ({ organizationId, farmId, name, timeZone: 'UTC' })) })
  const sites = await api.db.site.findMany({ where: { organizationId }, select: { id: true } })
  await api.db.collection.createMany({
    data: sites.map(({ id }) => ({ organizationId, siteId: id, name: 'Also', vdiskId })),
  })
  const versions = () =>
    api.db.stateVersion.groupBy({
      by: ['siteId'],
      where: { organizationId },
      _sum: { raised: true },
      orderBy: { siteId: 'asc' },
    })
  const counts: Record<string, number> = {}
  for (const path of ['version.revert', 'version.override']) {
    const { revision: vdiskRevision } = await api.db.vdisk.findUniqueOrThrow({
      where: { organizationId_id: { organizationId, id: vdiskId } },
    })
    const before = await versions()
    statements.length = 0
    await mutate(api, cookie, path, { versionId, vdiskRevision })
    counts[path] = statements.length
    const after = await versions()
    expect(after).toHaveLength(siteCount)
    for (const [index, { _sum }] of after.entries())
      expect(_sum.raised).toBeGreaterThan(Number(before[index]?._sum.raised))
  }
  return counts
}

test('a change of a vDisk takes as many statements at 60 sites as at one, and raises the version of each', async () => {
  const atOne = await statementsAt(1)
  expect(Math.min(...Object.values(atOne))).toBeGreaterThan(1)
  expect(await statementsAt(60)).toEqual(atOne)
})
