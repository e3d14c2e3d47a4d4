import { randomUUID } from 'node:crypto'
import { captureSizeMax } from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { pcapOf, uefiPxePackets, uefiPxePcap } from '../../test/captures/pcap.ts'
import { bootWith, EdgeClient } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { makeJoinToken, signInAs } from '../../test/test-tenant.ts'
import { captureKeptDays, dropOldCaptures } from './drop-old-captures.ts'
import { capturesPerSiteMax } from './keep-capture.ts'
import type { BootCapture, BootDetail } from './schema.ts'

const site = useTestSite('operator')
const accepted = { status: 204, body: null }

/** A boot of the site's first device that its edge has reported. */
async function reportedBoot(): Promise<string> {
  const id = randomUUID()
  await site().report(bootWith({ id, mac: site().mac }))
  return id
}

const getCapture = (bootId: string) => site().query<BootCapture>('boot.capture', { bootId })
const getBoot = (bootId: string) => site().query<BootDetail>('boot.get', { bootId })
const download = (bootId: string, cookie = site().cookie) =>
  fetch(`${site().api.url}/api/v1/boots/${bootId}/capture.pcap`, { headers: { cookie } })

describe('a capture that an edge sends', () => {
  test('is kept with its boot, in words and as the file that was sent', async () => {
    const bootId = await reportedBoot()
    expect((await getBoot(bootId)).capture).toBeNull()
    expect(await getCapture(bootId)).toBeNull()
    expect(await site().edge.capture(bootId, uefiPxePcap)).toEqual(accepted)
    const counts = { packetCount: uefiPxePackets, sizeBytes: uefiPxePcap.byteLength }
    expect((await getBoot(bootId)).capture).toEqual({ ...counts, receivedAt: '2026-11-20T12:00:00.000Z' })
    const capture = await getCapture(bootId)
    expect(capture).toMatchObject(counts)
    expect(capture?.packets).toHaveLength(uefiPxePackets)
    const answer = await download(bootId)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/vnd.tcpdump.pcap')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="boot-pc-01-2026-11-20T115900Z.pcap"')
    expect(Buffer.from(await answer.arrayBuffer()).equals(uefiPxePcap)).toBe(true)
  })

  test('sent again replaces the one before', async () => {
    const bootId = await reportedBoot()
    await site().edge.capture(bootId, uefiPxePcap)
    expect(await site().edge.capture(bootId, pcapOf([new Uint8Array(60)]))).toEqual(accepted)
    expect(await getCapture(bootId)).toMatchObject({ packetCount: 1, packets: [{ sizeBytes: 60 }] })
  })

  test('of a boot that is not reported, or by another edge, is refused', async () => {
    const { api, tenant } = site()
    const bootId = await reportedBoot()
    const [second, foreign] = [
      await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant)),
      (await site().other('owner')).edge,
    ]
    const answers = [
      await site().edge.capture(randomUUID(), uefiPxePcap),
      await second.capture(bootId, uefiPxePcap),
      await foreign.capture(bootId, uefiPxePcap),
    ]
    for (const { status, body } of answers) {
      expect(status).toBe(404)
      expect(body).toMatchObject({ code: 'boot_unknown', status: 404, type: 'about:blank' })
    }
    expect(await getCapture(bootId)).toBeNull()
  })

  test.each([
    [Uint8Array.from(Buffer.from('no packets at all, only words')), 400, 'invalid_body'],
    [new Uint8Array(0), 400, 'invalid_body'],
    [pcapOf([new Uint8Array(captureSizeMax)]), 413, 'too_large'],
  ])('that is none, or too large, is refused (%#)', async (pcap, status, code) => {
    const bootId = await reportedBoot()
    expect(await site().edge.capture(bootId, pcap)).toMatchObject({ status, body: { status, code } })
    expect(await getCapture(bootId)).toBeNull()
  })

  test('of the greatest size is taken', async () => {
    const bootId = await reportedBoot()
    const pcap = pcapOf([new Uint8Array(captureSizeMax - 40)])
    expect(pcap.byteLength).toBe(captureSizeMax)
    expect(await site().edge.capture(bootId, pcap)).toEqual(accepted)
  })

  test('for a path that names no boot, or signed for other bytes, is refused', async () => {
    expect(await site().edge.capture('1', uefiPxePcap)).toMatchObject({ body: { code: 'invalid_body' } })
    const bootId = await reportedBoot()
    const path = `/edge/v1/boots/${bootId}/capture`
    const headers = { 'bootfarm-signature': Buffer.alloc(64).toString('base64') }
    const answer = await site().edge.send({ method: 'PUT', path, body: uefiPxePcap, headers })
    expect(answer).toMatchObject({ status: 401, body: { code: 'signature_invalid' } })
  })
})

describe('who may have it', () => {
  test('operators and above; others get what there is for an absent one', async () => {
    const bootId = await reportedBoot()
    await site().edge.capture(bootId, uefiPxePcap)
    const { api, tenant } = site()
    const foreign = await site().other('owner')
    const viewer = await signInAs(api, tenant.organizationId, 'viewer')
    expect((await download(bootId, '')).status).toBe(401)
    expect((await download(bootId, viewer)).status).toBe(403)
    expect((await download(bootId, await signInAs(api, tenant.organizationId, 'admin'))).status).toBe(200)
    const [hidden, absent] = [await download(bootId, foreign.cookie), await download(randomUUID(), foreign.cookie)]
    expect([hidden.status, await problemOf(hidden)]).toEqual([404, await problemOf(absent)])
    expect((await download('1 or 1=1')).status).toBe(400)
  })
})

describe('what is kept', () => {
  test('are the newest of a site, for a month', async () => {
    const { api, tenant, edge } = site()
    const bootIds = [await reportedBoot(), await reportedBoot(), await reportedBoot()] as const
    const [oldest, , last] = bootIds
    for (const bootId of bootIds) {
      await edge.capture(bootId, uefiPxePcap)
      api.clock.advance(1000)
    }
    // Fills the capacity beside the newer two, in one statement.
    await api.db.$executeRaw`
      with key as (
        insert into boot_key (organization_id, boot_id, received_on, change)
        select ${tenant.organizationId}::uuid, gen_random_uuid(), '2026-11-20', 0 from generate_series(1, ${capturesPerSiteMax - 3})
        returning boot_id
      )
      insert into boot_capture (organization_id, boot_id, site_id, received_at, packet_count, size_bytes, pcap)
      select ${tenant.organizationId}::uuid, boot_id, ${tenant.siteId}::uuid, ${new Date(api.clock.now.getTime() + 1000)}, 0, 24, ''
      from key`
    const count = () => api.db.bootCapture.count({ where: { organizationId: tenant.organizationId } })
    expect(await count()).toBe(capturesPerSiteMax)
    api.clock.advance(2000)
    const newest = await reportedBoot()
    await edge.capture(newest, uefiPxePcap)
    expect(await count()).toBe(capturesPerSiteMax)
    expect(await getCapture(oldest)).toBeNull()
    expect(await getCapture(last)).not.toBeNull()

    const context = { db: api.db, clock: api.clock.read }
    const other = await site().other('operator')
    const kept = randomUUID()
    await other.report(bootWith({ id: kept, mac: other.mac }))
    api.clock.advance(captureKeptDays * 86_400_000)
    await other.edge.capture(kept, uefiPxePcap)
    expect(await dropOldCaptures(context)).toBeGreaterThanOrEqual(capturesPerSiteMax - 1)
    expect(await count()).toBe(1)
    api.clock.advance(1)
    expect(await dropOldCaptures(context)).toBe(1)
    expect(await count()).toBe(0)
    expect(await other.query<BootCapture>('boot.capture', { bootId: kept })).not.toBeNull()
  })
})

/** Without what tells one request from another. */
async function problemOf(answer: Response): Promise<unknown> {
  const { requestId: _own, ...problem } = (await answer.json()) as Record<string, unknown>
  return problem
}
