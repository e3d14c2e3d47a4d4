import { randomUUID } from 'node:crypto'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect, test } from 'vitest'
import { bootWith } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import type { BootDetail } from '../../boot/schema.ts'

const site = useTestSite('operator')

const bootIds = async () => (await site().query<{ items: { id: string }[] }>('boot.list', {})).items.map(({ id }) => id)

/** Goes on in its second stage. */
function goingOn(id: string): BootReport {
  const { outcome: _none, ...boot } = bootWith({
    id,
    mac: site().tenant.macs[0] ?? '',
    startedUnixMs: site().api.clock.now.getTime() - 60_000,
  })
  const phases = boot.phases.filter(({ name }) => name !== 'ready')
  return { ...boot, vendorClass: 'PXEClient', phases }
}

test('a boot that goes on at another edge is one boot, which says where; what the first edge says later changes nothing', async () => {
  const second = await site().enrolEdge()
  const first = goingOn(randomUUID())
  await site().send([{ type: 'boot', boot: first }])
  const { vendorClass: _unknown, ...known } = first
  const handOver = { number: 1, fromEdgeId: site().edge.edgeId, atUs: 9_000_000 }
  const moved = { ...known, handOver, revision: 2 ** 32 + 1, outcome: { kind: 'ready' as const } }
  await site().send([{ type: 'boot', boot: moved }], second)
  const late = { ...first, revision: first.revision + 5, outcome: { kind: 'superseded' as const } }
  await site().send([{ type: 'boot', boot: late }])
  expect(await bootIds()).toEqual([first.id])
  const boot = await site().query<BootDetail>('boot.get', { bootId: first.id })
  expect(boot).toMatchObject({
    outcome: 'ready',
    edgeId: site().edge.edgeId,
    handOver: { edgeId: second.edgeId, count: 1 },
    facts: { vendorClass: 'PXEClient' },
  })
  expect(boot.phases.map(({ name }) => name)).toEqual(first.phases.map(({ name }) => name))
})

test('an edge that says nothing of a hand-over does not take another edge’s boot', async () => {
  const second = await site().enrolEdge()
  const first = goingOn(randomUUID())
  await site().send([{ type: 'boot', boot: first }])
  await site().send([{ type: 'boot', boot: { ...first, revision: 2 ** 32, outcome: { kind: 'ready' } } }], second)
  expect(await site().query('boot.get', { bootId: first.id })).toMatchObject({ handOver: null })
  expect((await site().query<BootDetail>('boot.get', { bootId: first.id })).outcome).not.toBe('ready')
})
