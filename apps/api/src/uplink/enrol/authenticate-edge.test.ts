import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { backUp } from '@bootfarm/db/backup'
import { restore } from '@bootfarm/db/restore'
import { createEmptyDatabase } from '@bootfarm/db/testing'
import { expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient, guestWith } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { query } from '../../../test/test-client.ts'
import { createTenant, makeJoinToken, sessionCookie, signInAs } from '../../../test/test-tenant.ts'
import type { BootDetail } from '../../boot/schema.ts'

test('a restored control plane takes its edges back without enrolling again, and what it forgot is declared lost', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-backup-'))
  const file = path.join(folder, 'backup')
  const api = await startTestApi()
  const empty = await createEmptyDatabase()
  try {
    const tenant = await createTenant(api, 'restored')
    await signInAs(api, tenant.organizationId, 'owner')
    const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
    const [mac = ''] = tenant.macs
    const boots = Array.from({ length: 6 }, () => bootWith({ id: randomUUID(), mac, guest: guestWith() }))
    expect((await edge.reports(1, bootReports(1, boots.slice(0, 3)))).body).toMatchObject({ ackedSeq: 3 })
    const before = await pairOf(edge)
    const keys = await searchKeysOf(api.db)
    await backUp(api.databaseUrl, file)
    expect(statSync(file).mode & 0o777).toBe(0o600)

    // Reports acknowledged after the backup are gone with the old database, and at the edge, too.
    await edge.reports(4, bootReports(4, boots.slice(3, 5)))
    await api.db.device.update({
      where: { organizationId_id: { organizationId: tenant.organizationId, id: tenant.deviceIds[0] ?? '' } },
      data: { name: 'renamed after the backup' },
    })
    const later = await pairOf(edge)
    expect(later.counter).toBeGreaterThan(before.counter)

    await restore({ ownerUrl: empty.url, apiUrl: empty.apiUrl, file })
    const restored = await startTestApi({ database: empty })
    const db = createDb(empty.url)
    try {
      expect(keys).toContainEqual(expect.objectContaining({ key: 'pc-01' }))
      expect(await searchKeysOf(db)).toEqual(keys)
      edge.moveTo(restored.url)
      // Edges accept only a higher (incarnation, counter): a new incarnation precedes any counter.
      const state = await edge.state(`${later.incarnation}.${later.counter}`, 0)
      expect(state.status).toBe(200)
      const now = await pairOf(edge)
      expect(now.incarnation).toBeGreaterThan(later.incarnation)

      expect(await edge.reports(6, bootReports(6, boots.slice(5)))).toMatchObject({
        status: 409,
        body: { code: 'report_gap', expectedSeq: 4 },
      })
      const gap = { seq: 4, type: 'gap' as const, untilSeq: 5, reason: 'not_kept' }
      const healed = await edge.reports(4, [gap, ...bootReports(6, boots.slice(5))])
      expect(healed.body).toMatchObject({ ackedSeq: 6 })
      const user = await db.user.findFirstOrThrow()
      const cookie = await sessionCookie({ db }, user.id)
      const edgeView = await query<{ reportsLost: number }>(restored, cookie, 'edge.get', {
        edgeId: edge.edgeId,
      })
      expect(edgeView.reportsLost).toBe(2)
      for (const index of [0, 1, 2, 5])
        expect(await query<BootDetail>(restored, cookie, 'boot.get', { bootId: boots[index]?.id ?? '' })).toMatchObject(
          { deviceName: 'pc-01', detailGone: null, guest: { kernelStartUs: 1_200_000 } },
        )
      const byDay = await db.bootRollup.findMany({ where: { grain: 'day' }, select: { readyCount: true } })
      expect(byDay).toEqual([{ readyCount: 4 }])
      await expect(restore({ ownerUrl: empty.url, apiUrl: empty.apiUrl, file })).rejects.toThrow(
        /organizations already/,
      )
    } finally {
      await db.$disconnect()
      await restored.close()
    }
    for (const [damage, message] of damages) {
      const damaged = path.join(folder, 'damaged')
      writeFileSync(damaged, damage(readFileSync(file)))
      await expect(restore({ ownerUrl: empty.url, apiUrl: empty.apiUrl, file: damaged })).rejects.toThrow(message)
    }
  } finally {
    await api.close()
    await empty.drop()
    rmSync(folder, { recursive: true })
  }
})

function searchKeysOf(db: Pick<TestApi['db'], '$queryRaw'>) {
  return db.$queryRaw`select kind, rank, key, object_id::text from search_key order by 1, 2, 3, 4`
}

const damages: [(whole: Buffer) => Uint8Array, RegExp][] = [
  [(whole) => whole.subarray(0, whole.length / 2), /cut short/],
  [() => Buffer.from('not a backup'), /no backup/],
]

async function pairOf(edge: EdgeClient): Promise<{ incarnation: number; counter: number }> {
  const { body } = await edge.state('0.0', 0)
  return JSON.parse(String(body?.payload)) as { incarnation: number; counter: number }
}
