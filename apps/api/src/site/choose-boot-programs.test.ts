import type { Heartbeat } from '@bootfarm/proto/uplink'
import { describe, expect, test } from 'vitest'
import { useTestSite } from '../../test/test-site.ts'
import type { DeviceDetail } from '../device/schema.ts'
import type { BootProgramSetView } from '../rules/boot-programs.ts'

const site = useTestSite('admin')

type BootProgram = NonNullable<Heartbeat['bootPrograms']>[number]
const program = (set: string, changes: Partial<BootProgram> = {}): BootProgram => ({
  set,
  file: 'ipxe.efi',
  arch: 'x64_uefi',
  kind: 'iPXE',
  version: '1.21.1',
  sizeBytes: 1_000_000,
  sha256: 'ab'.repeat(32),
  signedBy: [],
  ...changes,
})
const reported = [program('ipxe'), program('ipxe-new', { version: '2.0.0' })]
const sets = async () =>
  (
    await site().query<{ sets: BootProgramSetView[] }>('site.bootProgramSets', {
      siteId: site().tenant.siteId,
    })
  ).sets
const choose = (of: 'site' | 'collection' | 'device', bootProgramSet: string | null) => {
  const { siteId, collectionId, deviceIds } = site().tenant
  const ids = { site: { siteId }, collection: { collectionId }, device: { deviceId: deviceIds[0] } }
  return site().tryMutation(`${of}.setBootProgramSet`, { ...ids[of], bootProgramSet })
}
const chosen = async () => {
  const { bootProgramSet, devices } = await site().state()
  return [bootProgramSet, ...devices.slice(0, 2).map((device) => device.bootProgramSet)]
}

describe('sets of boot programs', () => {
  test('are those that the site’s edges report, with who has not got them', async () => {
    const second = await site().enrolEdge()
    const grub = program('shim-grub', { file: 'grubx64.efi', kind: 'GRUB', signedBy: ['CN=Debian'] })
    await site().edge.heartbeat({ bootPrograms: [...reported, grub] })
    await second.heartbeat({ bootPrograms: [program('ipxe')] })
    const missingAt = [{ edgeId: second.edgeId, edgeName: 'edge-1' }]
    expect(await sets()).toMatchObject([
      { name: 'ipxe', hasGrub: false, missingAt: [], programs: [{ file: 'ipxe.efi', version: '1.21.1' }] },
      { name: 'ipxe-new', hasGrub: false, missingAt },
      { name: 'shim-grub', hasGrub: true, missingAt, programs: [{ signedBy: ['CN=Debian'] }] },
    ])
  })

  test('are none where no edge reports any, or only a revoked one', async () => {
    expect(await sets()).toEqual([])
    await site().edge.heartbeat({ bootPrograms: reported })
    await site().revokeEdge(site().edge.edgeId)
    expect(await sets()).toEqual([])
  })

  test('that a heartbeat names are as many as there may be', async () => {
    const many = Array.from({ length: 32 }, (_, index) =>
      program(`set-${index}`, {
        file: 'f'.repeat(64),
        signedBy: Array.from({ length: 4 }, () => 's'.repeat(64)),
      }),
    )
    expect((await site().edge.heartbeat({ bootPrograms: many })).status).toBe(200)
    expect(await sets()).toHaveLength(32)
  })
})

describe('a choice', () => {
  test('of the device goes before its collection’s, and that before the site’s', async () => {
    await site().edge.heartbeat({ bootPrograms: [...reported, program('third')] })
    expect(await chosen()).toEqual([undefined, undefined, undefined])
    await choose('site', 'ipxe')
    expect(await chosen()).toEqual(['ipxe', undefined, undefined])
    await choose('collection', 'ipxe-new')
    expect(await chosen()).toEqual(['ipxe', 'ipxe-new', 'ipxe-new'])
    await choose('device', 'third')
    expect(await chosen()).toEqual(['ipxe', 'third', 'ipxe-new'])
    const { deviceIds } = site().tenant
    const { bootProgramSets } = await site().query<DeviceDetail>('device.get', { deviceId: deviceIds[0] })
    expect(bootProgramSets).toEqual({ device: 'third', collection: 'ipxe-new', site: 'ipxe' })
  })

  test('that is the site’s too is not repeated for the device, and null takes it back', async () => {
    await site().edge.heartbeat({ bootPrograms: reported })
    await choose('site', 'ipxe')
    await choose('collection', 'ipxe-new')
    await choose('device', 'ipxe')
    expect(await chosen()).toEqual(['ipxe', undefined, 'ipxe-new'])
    for (const of of ['site', 'collection', 'device'] as const) await choose(of, null)
    expect(await chosen()).toEqual([undefined, undefined, undefined])
  })

  test('of a set that no edge has is refused, and nothing changes', async () => {
    const answer = await choose('site', 'grub')
    expect(answer).toMatchObject({ status: 409, code: 'conflict' })
    expect(answer.text).toContain('No edge of this site has the boot programs')
    expect(await chosen()).toEqual([undefined, undefined, undefined])
  })

  test('that is no name is refused', async () => {
    expect(await choose('site', '../../etc')).toMatchObject({ status: 400, code: 'invalid' })
  })
})

test('how often write caches are copied is in the state, within a week', async () => {
  const { siteId } = site().tenant
  expect(await site().state()).not.toHaveProperty('cacheCopyHours')
  await site().mutate('site.setCacheCopies', { siteId, cacheCopyHours: 24 })
  expect((await site().state()).cacheCopyHours).toBe(24)
  await expect(site().mutate('site.setCacheCopies', { siteId, cacheCopyHours: 169 })).rejects.toThrow()
  await site().mutate('site.setCacheCopies', { siteId, cacheCopyHours: 0 })
  expect(await site().state()).not.toHaveProperty('cacheCopyHours')
})

test('which packets are kept is in the state', async () => {
  expect((await site().state()).capture).toBe('failed')
  await site().mutate('site.setCapture', { siteId: site().tenant.siteId, capture: 'always' })
  expect((await site().state()).capture).toBe('always')
})
