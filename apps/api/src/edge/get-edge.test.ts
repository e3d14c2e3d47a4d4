import { expect, test } from 'vitest'
import { EdgeClient } from '../../test/edge-client.ts'
import { useTestSite } from '../../test/test-site.ts'
import { makeJoinToken } from '../../test/test-tenant.ts'
import type { EdgeDetail } from './schema.ts'

const site = useTestSite('viewer')
const getEdge = (edgeId: string) => site().query<EdgeDetail>('edge.get', { edgeId })
const at = (ip: string, mtu: number) => ({ name: 'eth0', ip, prefixLength: 24, mtu })

test('an edge shows its networks, and the edges with another MTU there', async () => {
  const { api, tenant, edge } = site()
  expect(await getEdge(edge.edgeId)).toMatchObject({ address: null, interfaces: [] })
  const second = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const foreign = (await site().other('viewer')).edge
  await edge.heartbeat({ address: '10.78.0.1', interfaces: [at('10.78.0.1', 1500), at('10.20.0.1', 1500)] })
  await second.heartbeat({ interfaces: [at('10.78.0.2', 9000)] })
  await foreign.heartbeat({ interfaces: [at('10.20.0.2', 9000)] })
  expect(await getEdge(edge.edgeId)).toMatchObject({
    address: '10.78.0.1',
    interfaces: [
      { ...at('10.78.0.1', 1500), otherMtus: [{ edgeId: second.edgeId, mtu: 9000 }] },
      { ...at('10.20.0.1', 1500), otherMtus: [] },
    ],
  })
  expect((await getEdge(second.edgeId)).interfaces[0]?.otherMtus).toMatchObject([
    { edgeId: edge.edgeId, edgeName: 'edge-1', mtu: 1500 },
  ])
  await api.db.edge.updateMany({ where: { id: second.edgeId }, data: { revokedAt: api.clock.now } })
  expect((await getEdge(edge.edgeId)).interfaces[0]?.otherMtus).toEqual([])
})

test('an edge shows what is wrong with its disks, and which parts of versions it could not read', async () => {
  const { api, tenant, edge } = site()
  await edge.heartbeat({})
  expect(await getEdge(edge.edgeId)).toMatchObject({ problems: [], storeErrors: [] })
  const version = await api.db.vdiskVersion.findFirst({
    where: { organizationId: tenant.organizationId },
    select: { id: true, number: true, vdiskId: true },
  })
  if (!version) throw new Error('The test site has no version.')
  const unknown = '7a000000-0000-4000-8000-000000000000'
  const error = { offset: 1 << 20, length: 32_768, count: 3, sinceUnixMs: Number.MAX_SAFE_INTEGER }
  await edge.heartbeat({
    problems: ['store_damaged', 'of_a_newer_edge'],
    storeErrors: [
      { ...error, versionId: version.id },
      { ...error, versionId: unknown },
    ],
  })
  expect(await getEdge(edge.edgeId)).toMatchObject({
    problems: ['store_damaged', 'of_a_newer_edge'],
    storeErrors: [
      { versionId: version.id, vdisk: { id: version.vdiskId, number: version.number }, offset: 1 << 20, count: 3 },
      { versionId: unknown, vdisk: null },
    ],
  })
})

test('an edge shows whose write caches it keeps copies of, and which edges have copies of its own', async () => {
  const { api, tenant, edge } = site()
  const second = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const gone = '7a000000-0000-4000-8000-000000000000'
  const oldestAt = new Date(Date.UTC(2026, 10, 28, 6)).toISOString()
  const said = { count: 12, oldestUnixMs: Date.parse(oldestAt) }
  await second.heartbeat({
    cacheCopies: [
      { ...said, edgeId: edge.edgeId },
      { ...said, edgeId: gone, count: 1 },
    ],
  })
  expect(await getEdge(second.edgeId)).toMatchObject({
    cacheCopies: [
      { edgeId: edge.edgeId, edgeName: 'edge-1', count: 12, oldestAt },
      { edgeId: gone, edgeName: null, count: 1, oldestAt },
    ],
    copiedTo: [],
  })
  expect(await getEdge(edge.edgeId)).toMatchObject({
    cacheCopies: [],
    copiedTo: [{ edgeId: second.edgeId, count: 12, oldestAt }],
  })
  await api.db.edge.updateMany({ where: { id: second.edgeId }, data: { revokedAt: api.clock.now } })
  expect((await getEdge(edge.edgeId)).copiedTo).toEqual([])
})
