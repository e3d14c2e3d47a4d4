import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import type { BootSummary } from './schema.ts'

interface Page {
  items: BootSummary[]
  nextCursor: string | null
}

const site = useTestSite('viewer')
const dayMs = 86_400_000

/** A boot of so many seconds that began so many minutes before the test clock's now. */
function boot(seconds: number, minutesAgo: number, changes: Partial<BootReport> = {}): BootReport {
  const startedUnixMs = site().api.clock.now.getTime() - minutesAgo * 60_000
  const [phase] = bootWith({ id: '', mac: '' }).phases as [BootReport['phases'][number]]
  const phases = [{ ...phase, durationUs: seconds * 1_000_000 }]
  return bootWith({ id: randomUUID(), mac: site().mac, startedUnixMs, phases, ...changes })
}

/** All pages of two boots each. */
async function listed(filter: object): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | null = null
  do {
    const page: Page = await site().query('boot.list', { ...filter, cursor, limit: 2 })
    ids.push(...page.items.map(({ id }) => id))
    cursor = page.nextCursor
  } while (cursor !== null)
  return ids
}

test('goes through all boots by duration, both ways, over the partitions of several days', async () => {
  const { outcome: _none, ...booting } = boot(1, 1)
  const boots = [boot(30, 5), boot(10, 6), boot(10, 7), booting]
  await site().report(...boots)
  site().api.clock.advance(dayMs)
  const later = [boot(20, 1), boot(40, 2)]
  await site().report(...later)
  const timed = [...boots, ...later].map(({ id, phases }) => ({
    id,
    us: id === booting.id ? -1 : (phases[0]?.durationUs ?? 0),
  }))
  const slowestFirst = timed.toSorted((a, b) => b.us - a.us || (a.id < b.id ? 1 : -1)).map(({ id }) => id)
  expect(await listed({ sort: '-durationUs' })).toEqual(slowestFirst)
  expect(await listed({ sort: 'durationUs' })).toEqual(slowestFirst.toReversed())
  const since = new Date(site().api.clock.now.getTime() - 60 * 60_000).toISOString()
  expect(await listed({ sort: '-durationUs', since })).toEqual([later[1]?.id, later[0]?.id])
  const isEarlier = (id: string) => boots.some((one) => one.id === id)
  expect(await listed({ sort: '-durationUs', until: since })).toEqual(slowestFirst.filter(isEarlier))
})

test('sorts by hour, hardware and storage, the newest first within a value, in pages of any length', async () => {
  const machines = [
    { processors: 4, memoryMib: 7_900, driver: 'virtio_net' },
    { processors: 16, memoryMib: 7_950, driver: 'e1000e' },
    { processors: 4, memoryMib: 32_000 },
    undefined,
  ]
  const boots = Array.from({ length: 12 }, (_, index) => {
    const machine = machines[index % machines.length]
    return boot(1, 1 + 37 * index, machine ? { machine } : {})
  })
  await site().report(...boots.slice(6))
  site().api.clock.advance(dayMs)
  const later = boots.slice(0, 6).map((one) => ({ ...one, startedUnixMs: one.startedUnixMs + dayMs }))
  await site().report(...later)
  const all = [...later, ...boots.slice(6)]
  const values = {
    hour: (one: BootReport) => new Date(one.startedUnixMs).getUTCHours(),
    processors: ({ machine }: BootReport) => machine?.processors,
    memoryGib: ({ machine }: BootReport) => machine && Math.round(machine.memoryMib / 1024),
    networkCard: ({ machine }: BootReport) => machine?.driver,
    storage: () => undefined,
  }
  for (const [name, of] of Object.entries(values)) {
    const rank = (one: BootReport) => of(one) ?? -1
    const sorted = (sign: number) =>
      all.toSorted((a, b) => {
        const [left, right] = [rank(a), rank(b)]
        if (left === right) return b.startedUnixMs - a.startedUnixMs
        return left === -1 || (right !== -1 && left < right) ? -sign : sign
      })
    expect([name, await listed({ sort: name })]).toEqual([name, sorted(1).map(({ id }) => id)])
    expect([name, await listed({ sort: `-${name}` })]).toEqual([name, sorted(-1).map(({ id }) => id)])
  }
  const since = new Date(site().api.clock.now.getTime() - 60 * 60_000).toISOString()
  const newest = later.filter(({ startedUnixMs }) => startedUnixMs >= Date.parse(since))
  expect((await listed({ sort: '-hour', since })).toSorted()).toEqual(newest.map(({ id }) => id).toSorted())
  expect(await listed({ sort: 'networkCard', processors: 16 })).toEqual(await listed({ processors: 16 }))
})

test('filters by place, vDisk, version, cause, name, address, duration and dates', async () => {
  const { tenant } = site()
  const cause = 'tftp_timeout'
  const failed = boot(5, 30, { outcome: { kind: 'failed', phase: 'nbp', cause } })
  const versioned = boot(6, 20, { mac: tenant.macs[1] ?? '', vdiskId: tenant.vdiskId, versionId: tenant.versionId })
  const stranger = boot(7, 10, { mac: '02:bf:00:00:99:01' })
  const noResponse = boot(0, 5, { outcome: { kind: 'silent', phase: 'firmware' } })
  await site().report(failed, versioned, stranger, noResponse)
  const all = [noResponse, stranger, versioned, failed].map(({ id }) => id)
  const ago = (minutes: number) => new Date(site().api.clock.now.getTime() - minutes * 60_000).toISOString()
  const device = await site().api.db.device.findFirstOrThrow({ where: { id: tenant.deviceIds[1] ?? '' } })
  for (const [filter, expected] of [
    [{ farmId: tenant.farmId }, all],
    [{ farmId: randomUUID() }, []],
    [{ edgeId: site().edge.edgeId }, all],
    [{ edgeId: randomUUID() }, []],
    [{ collectionId: tenant.collectionId }, [noResponse.id, versioned.id, failed.id]],
    [{ vdiskId: tenant.vdiskId }, [versioned.id]],
    [{ versionId: tenant.versionId }, [versioned.id]],
    [{ versionId: randomUUID() }, []],
    [{ failedCause: cause }, [failed.id]],
    [{ failedCause: cause, outcome: 'ready' }, []],
    [{ outcome: 'unsuccessful' }, [failed.id]],
    [{ outcome: 'no_response' }, [noResponse.id]],
    [{ outcome: 'silent' }, []],
    [{ search: device.name.toUpperCase() }, [versioned.id]],
    [{ search: '00-99' }, [stranger.id]],
    [{ search: '%' }, []],
    [{ since: ago(25), until: ago(10) }, [versioned.id]],
    [{ durationUsMin: 6_000_000, durationUsMax: 6_000_000 }, [versioned.id]],
    [{ durationUsMin: 6_000_000, sort: '-durationUs' }, [stranger.id, versioned.id]],
  ] as const)
    expect([filter, await listed(filter)]).toEqual([filter, expected])
})

test('a cursor of another order, and one with a number that is none, is refused', async () => {
  await site().report(boot(1, 1), boot(2, 2), boot(3, 3))
  const { nextCursor } = await site().query<Page>('boot.list', { sort: '-durationUs', limit: 1 })
  const forged = Buffer.from(JSON.stringify(['1e9', randomUUID(), '-durationUs'])).toString('base64url')
  for (const input of [
    { cursor: nextCursor },
    { cursor: nextCursor, sort: 'durationUs' },
    { cursor: forged, sort: '-durationUs' },
    { cursor: nextCursor, sort: 'processors' },
    { cursor: Buffer.from('["four",null,"processors"]').toString('base64url'), sort: 'processors' },
    { cursor: Buffer.from('[4,"gremlin","processors"]').toString('base64url'), sort: 'processors' },
    { cursor: Buffer.from('[-1,null,"hour"]').toString('base64url'), sort: 'hour' },
    { hour: 24 },
    { processors: 0 },
    { segment: '10.77.0.0' },
    { durationUsMin: -1 },
    { durationUsMin: 1e18 },
    { until: 'tomorrow' },
    { failedCause: 'gremlins' },
    { search: 'x'.repeat(65) },
  ])
    expect(await site().tryQuery('boot.list', input)).toMatchObject({ status: 400, code: 'invalid' })
})
