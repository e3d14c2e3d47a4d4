import { randomUUID } from 'node:crypto'
import { type FilesRead, filesReadShownMax, filesReadSizeMax, programsShownMax } from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { bootWith, EdgeClient } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import { makeJoinToken, signInAs } from '../../../test/test-tenant.ts'
import { captureKeptDays, dropOldCaptures } from '../drop-old-captures.ts'
import { filesReadPerSiteMax } from './keep-files-read.ts'
import type { BootFilesRead } from './schema.ts'

const site = useTestSite('operator')
const accepted = { status: 204, body: null }

/** A boot of the site's first device that its edge has reported. */
async function reportedBoot(): Promise<string> {
  const id = randomUUID()
  await site().report(bootWith({ id, mac: site().mac }))
  return id
}

const getFilesRead = (bootId: string) => site().query<BootFilesRead>('boot.filesRead', { bootId })

const file: FilesRead['files'][number] = {
  name: '/usr/lib/libc.so.6',
  kind: 'file',
  reads: 2,
  bytes: 262_144,
  coldReads: 1,
  storageUs: 4100,
  firstUs: 12_000,
}
const report: FilesRead = {
  versionId: '9d0a6b32-55cf-4e5f-9b6d-3c1f6a1c2f10',
  reads: 3,
  bytes: 266_240,
  coldReads: 1,
  coldBytes: 131_072,
  aheadReads: 1,
  aheadBytes: 4096,
  storageUs: 4200,
  namedBytes: 266_240,
  droppedReads: 0,
  fileCount: 1,
  diskBytes: 2 ** 30,
  cellBytes: 2 ** 22,
  cells: [[3, 266_240, 12_000]],
  files: [file],
  slowest: [
    {
      atUs: 12_000,
      offset: 13_000_192,
      bytes: 131_072,
      storageUs: 4000,
      isCold: true,
      isAhead: false,
      name: file.name,
    },
  ],
}
const program = {
  name: 'plymouthd',
  unit: 'plymouth-start.service',
  reads: 3,
  bytes: 266_240,
  coldReads: 1,
  coldBytes: 131_072,
  aheadBytes: 4096,
  storageUs: 4200,
  firstUs: 12_000,
  gainUs: 4000,
}
const { unit: _unit, ...unit } = program
/** What only a device can tell. */
const told = {
  trace: { state: 'complete', lost: 0, namedBytes: 266_240, unitBytes: 266_240 },
  programs: [program],
  units: [unit],
  slowestUnits: [{ name: 'plymouth-start.service', startUs: 3_000_000, durationUs: 900_000 }],
  unitChain: [{ name: 'multi-user.target', startUs: 9_000_000, durationUs: 0 }],
} satisfies Partial<FilesRead>
const changed = (changes: Partial<FilesRead>): FilesRead => Object.assign(structuredClone(report), changes)

describe('what a boot read', () => {
  test('is kept with its boot, and replaced when it is sent again', async () => {
    const bootId = await reportedBoot()
    expect(await getFilesRead(bootId)).toBeNull()
    expect(await site().edge.filesRead(bootId, report)).toEqual(accepted)
    const { cells: _cells, ...rest } = report
    expect(await getFilesRead(bootId)).toEqual({
      ...rest,
      receivedAt: '2026-11-20T12:00:00.000Z',
      cells: [{ index: 3, bytes: 266_240, firstUs: 12_000 }],
      trace: null,
      programs: [],
      units: [],
      slowestUnits: [],
      unitChain: [],
    })
    expect(await site().edge.filesRead(bootId, changed(told))).toEqual(accepted)
    expect(await getFilesRead(bootId)).toMatchObject(told)
  })

  test('of a boot that is not reported, or by another edge, is refused', async () => {
    const { api, tenant } = site()
    const bootId = await reportedBoot()
    const second = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
    const foreign = (await site().other('owner')).edge
    const answers = [
      await site().edge.filesRead(randomUUID(), report),
      await second.filesRead(bootId, report),
      await foreign.filesRead(bootId, report),
    ]
    for (const answer of answers) expect(answer).toMatchObject({ status: 404, body: { code: 'boot_unknown' } })
    expect(await getFilesRead(bootId)).toBeNull()
  })

  test.each([
    [{}, 400, 'invalid_body'],
    [changed({ reads: -1 }), 400, 'invalid_body'],
    [changed({ cellBytes: 0 }), 400, 'invalid_body'],
    [changed({ cells: [[256, 1, 1]] }), 400, 'invalid_body'],
    [changed({ files: [{ ...file, name: '/\u001b[31m' }] }), 400, 'invalid_body'],
    [changed({ files: [{ ...file, name: 'x'.repeat(201) }] }), 400, 'invalid_body'],
    [changed({ files: Array.from({ length: filesReadShownMax + 1 }, () => file) }), 400, 'invalid_body'],
    [changed({ programs: [{ ...program, name: '\u001b[31m' }] }), 400, 'invalid_body'],
    [changed({ programs: Array.from({ length: programsShownMax + 1 }, () => program) }), 400, 'invalid_body'],
    [changed({ unitChain: [{ name: 'x'.repeat(65), startUs: 0, durationUs: 0 }] }), 400, 'invalid_body'],
    [{ ...report, more: 'x'.repeat(filesReadSizeMax) }, 413, 'too_large'],
  ])('that is none, or beyond its limits, is refused (%#)', async (body, status, code) => {
    const bootId = await reportedBoot()
    expect(await site().edge.filesRead(bootId, body)).toMatchObject({ status, body: { status, code } })
    expect(await getFilesRead(bootId)).toBeNull()
  })

  test('is shown to whoever may see the boot, and to nobody else', async () => {
    const bootId = await reportedBoot()
    await site().edge.filesRead(bootId, report)
    const { api, tenant } = site()
    const read = (cookie: string) => fetch(`${api.url}/api/v1/boots/${bootId}/files-read`, { headers: { cookie } })
    expect((await read(await signInAs(api, tenant.organizationId, 'viewer'))).status).toBe(200)
    expect((await read('')).status).toBe(401)
    expect((await read((await site().other('owner')).cookie)).status).toBe(404)
  })

  test('is kept for the newest boots of a site, and for as long as captures', async () => {
    const { api, tenant, edge } = site()
    const oldest = await reportedBoot()
    await edge.filesRead(oldest, report)
    await api.db.$executeRaw`
      with key as (
        insert into boot_key (organization_id, boot_id, received_on, change)
        select ${tenant.organizationId}::uuid, gen_random_uuid(), '2026-11-20', 0 from generate_series(1, ${filesReadPerSiteMax - 1})
        returning boot_id
      )
      insert into boot_files_read (organization_id, boot_id, site_id, received_at, report)
      select ${tenant.organizationId}::uuid, boot_id, ${tenant.siteId}::uuid, ${new Date(api.clock.now.getTime() + 1000)}, '{}'
      from key`
    const count = () => api.db.bootFilesRead.count({ where: { organizationId: tenant.organizationId } })
    expect(await count()).toBe(filesReadPerSiteMax)
    api.clock.advance(2000)
    await edge.filesRead(await reportedBoot(), report)
    expect(await count()).toBe(filesReadPerSiteMax)
    expect(await getFilesRead(oldest)).toBeNull()
    api.clock.advance(captureKeptDays * 86_400_000 + 1)
    expect(await dropOldCaptures({ db: api.db, clock: api.clock.read })).toBeGreaterThanOrEqual(filesReadPerSiteMax)
    expect(await count()).toBe(0)
  })
})
