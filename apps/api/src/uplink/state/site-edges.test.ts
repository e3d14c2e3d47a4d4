import { openStateKeys } from '@bootfarm/proto/testing/open-box'
import { expect, test } from 'vitest'
import { EdgeClient, type heartbeatWith } from '../../../test/edge-client.ts'
import { useTestSite } from '../../../test/test-site.ts'
import { makeJoinToken } from '../../../test/test-tenant.ts'
import type { EdgeDetail } from '../../edge/schema.ts'
import type { SiteDetail } from '../../site/schema.ts'

const site = useTestSite('admin')

/** Of RFC 7748, section 6.1: the secret belongs to the first public key. */
const sealSecret = Buffer.from('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb', 'hex')
const sealKeys = [
  'de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f',
  '8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a',
].map((hex) => Buffer.from(hex, 'hex').toString('base64'))

const beat = async (edge: EdgeClient, changes: Parameters<typeof heartbeatWith>[0] = {}) =>
  expect((await edge.heartbeat(changes)).status).toBe(200)
const share = (edge: EdgeClient, weight: unknown, subnets: unknown = []) =>
  site().tryMutation('edge.setShare', { edgeId: edge.edgeId, revision: 1, weight, subnets })

test('a site with one edge has no list of them', async () => {
  await beat(site().edge, { address: '192.0.2.1', peerPort: 6911 })
  expect((await site().state()).siteEdges).toBeUndefined()
})

test('edges of a site hear of each other by the same list and key', async () => {
  const first = site().edge
  const second = await site().enrolEdge()
  await beat(first, { address: '192.0.2.1', peerPort: 6911, streamPort: 6910 })
  await share(second, 40, ['10.20.0.0/16', '10.20.0.0/16'])
  const { siteEdges } = await site().state(first)
  const standard = { weight: 10, subnets: [], draining: false }
  expect(siteEdges?.edges).toEqual([
    { id: first.edgeId, ...standard, address: '192.0.2.1', peerPort: 6911, streamPort: 6910 },
    {
      id: second.edgeId,
      weight: 40,
      subnets: ['10.20.0.0/16'],
      draining: false,
      address: null,
      peerPort: null,
      streamPort: null,
    },
  ])
  expect((await site().state(second)).siteEdges).toEqual(siteEdges)
})

test('an edge that names a key to seal to gets the keys in a box, and an older one in clear text', async () => {
  const [first, second] = [site().edge, await site().enrolEdge()]
  const open = await site().state(second)
  expect(open.sealed).toBeUndefined()
  const { key = '', ticketKeys: [ticketKey = ''] = [] } = open.siteEdges ?? {}
  expect(Buffer.from(key, 'base64')).toHaveLength(32)
  const listening = site().api.nextListener()
  const waiting = first.state(`1.${(await site().state(first)).counter}`, 25_000)
  await listening
  await beat(first, { sealKey: sealKeys[0] })
  expect((await waiting).status).toBe(200)
  const sealed = await site().state(first)
  expect(sealed.siteEdges?.edges).toEqual(open.siteEdges?.edges)
  expect(sealed.siteEdges).not.toHaveProperty('key')
  expect(sealed.siteEdges).not.toHaveProperty('ticketKeys')
  expect(openStateKeys(sealed.sealed ?? '', { edgeId: first.edgeId, secret: sealSecret })).toEqual({
    siteKey: key,
    ticketKeys: open.siteEdges?.ticketKeys,
  })
  const { payload } = await site().api.db.desiredState.findFirstOrThrow({ where: { edgeId: first.edgeId } })
  for (const text of [key, ticketKey]) expect(payload).not.toContain(text)
  // The same content keeps its box; another key gets another one.
  await beat(first, { sealKey: sealKeys[0] })
  expect(await site().state(first)).toEqual(sealed)
  await beat(first, { sealKey: sealKeys[1] })
  const again = await site().state(first)
  expect(again.counter).toBe(sealed.counter + 1)
  expect(again.sealed).not.toBe(sealed.sealed)
  // The edge returned to an older release.
  await beat(first)
  expect((await site().state(first)).siteEdges?.key).toBe(key)
})

test('an edge that names its key at enrolment never gets keys in clear text', async () => {
  const { api, tenant } = site()
  const edge = new EdgeClient(api.url)
  const { body } = await edge.enrol(await makeJoinToken(api, tenant), { sealKey: sealKeys[0] })
  edge.edgeId = String(body?.edgeId)
  const state = await site().state(edge)
  expect(state).toHaveProperty('sealed')
  expect(state.siteEdges).not.toHaveProperty('key')
})

test('two edges that ask at once get the same key', async () => {
  const second = await site().enrolEdge()
  const states = await Promise.all([site().state(), site().state(second)])
  expect(new Set(states.map(({ siteEdges }) => siteEdges?.key)).size).toBe(1)
})

test('a heartbeat makes no new state unless the edge is reached elsewhere', async () => {
  const second = await site().enrolEdge()
  await beat(second, { address: '192.0.2.2', peerPort: 6911 })
  const { counter } = await site().state()
  await beat(second, { address: '192.0.2.2', peerPort: 6911, uptimeMs: 10_000, devicesBooting: 3 })
  expect((await site().state()).counter).toBe(counter)
  const listening = site().api.nextListener()
  const waiting = site().edge.state(`1.${counter}`, 25_000)
  await listening
  await beat(second, { address: '192.0.2.3', peerPort: 6911 })
  expect((await waiting).status).toBe(200)
  expect((await site().state()).siteEdges?.edges[1]?.address).toBe('192.0.2.3')
})

test('a second edge’s enrolment wakes the first', async () => {
  const { counter } = await site().state()
  const listening = site().api.nextListener()
  const waiting = site().edge.state(`1.${counter}`, 25_000)
  await listening
  await site().enrolEdge()
  expect((await waiting).status).toBe(200)
})

test('a drained edge is told so, and has no share', async () => {
  const second = await site().enrolEdge()
  for (const edge of [site().edge, second]) await beat(edge)
  const shares = async () =>
    (await site().query<SiteDetail>('site.get', { siteId: site().tenant.siteId })).edges.map((edge) => edge.share)
  expect(await shares()).toEqual([50, 50])
  await site().mutate('edge.drain', { edgeId: second.edgeId, revision: 1, draining: true })
  expect((await site().state()).siteEdges?.edges.map(({ draining }) => draining)).toEqual([false, true])
  expect((await shares()).sort()).toEqual([0, 100])
  await site().mutate('edge.drain', { edgeId: second.edgeId, revision: 2, draining: false })
  expect(await shares()).toEqual([50, 50])
})

test('who has not seen an edge’s last change does not write over it', async () => {
  const { edgeId } = site().edge
  expect((await share(site().edge, 40)).status).toBe(200)
  expect(await share(site().edge, 50)).toMatchObject({ status: 409 })
  const drain = (revision?: number) => site().tryMutation('edge.drain', { edgeId, revision, draining: true })
  expect(await drain(1)).toMatchObject({ status: 409 })
  expect(await drain()).toMatchObject({ status: 400 })
  expect(await drain(2)).toMatchObject({ status: 200 })
  expect(await site().query<EdgeDetail>('edge.get', { edgeId })).toMatchObject({ weight: 40, draining: true })
})

test('a revoked edge is refused, and the others get a new key', async () => {
  const [second, third] = [await site().enrolEdge(), await site().enrolEdge()]
  const before = (await site().state()).siteEdges
  await site().revokeEdge(third.edgeId)
  const after = (await site().state()).siteEdges
  expect(after?.edges.map(({ id }) => id)).toEqual([site().edge.edgeId, second.edgeId])
  expect(after?.key).not.toBe(before?.key)
  expect(await third.state('0.0', 0)).toMatchObject({ status: 403, body: { code: 'edge_revoked' } })
  await site().revokeEdge(third.edgeId)
  expect((await site().state()).siteEdges).toEqual(after)
})

test('an edge that is revoked while it waits for its state gets none, and with it not the new key', async () => {
  const second = await site().enrolEdge()
  const { counter } = await site().state(second)
  const listening = site().api.nextListener()
  const waiting = second.state(`1.${counter}`, 25_000)
  await listening
  await site().revokeEdge(second.edgeId)
  expect(await waiting).toMatchObject({ status: 403, body: { code: 'edge_revoked' } })
})

test('an edge’s page has the peers that it hears, and how many edges there are', async () => {
  const second = await site().enrolEdge()
  const unknown = '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701'
  const peers = [
    { edgeId: second.edgeId, heardMsAgo: 400, booting: 2 },
    { edgeId: unknown, heardMsAgo: 90_000, booting: 0 },
  ]
  await beat(site().edge, { peers })
  const { edgeId } = site().edge
  expect(await site().query<EdgeDetail>('edge.get', { edgeId })).toMatchObject({
    siteEdgeCount: 2,
    peers: [
      { ...peers[0], edgeName: 'edge-1' },
      { ...peers[1], edgeName: null },
    ],
  })
  const { edges } = await site().query<SiteDetail>('site.get', { siteId: site().tenant.siteId })
  expect(edges.find(({ id }) => id === edgeId)?.peersHeard).toBe(1)
})

test('a site has at most 16 edges, which know each other', async () => {
  for (let count = 1; count < 16; count++) await site().enrolEdge()
  expect((await site().state()).siteEdges?.edges).toHaveLength(16)
  await expect(site().enrolEdge()).rejects.toThrow('This site already has 16 edges')
})

test('a weight or a network that is none is refused, with what is wrong', async () => {
  const refused: [unknown, string[], string][] = [
    [101, [], 'weight'],
    [-1, [], 'weight'],
    [1.5, [], 'weight'],
    [10, ['10.1.0.0/8'], 'Use 10.0.0.0/8'],
    [10, ['lab'], 'is not a network'],
    [10, Array.from({ length: 33 }, (_, n) => `10.${n}.0.0/16`), 'at most 32 networks'],
  ]
  for (const [weight, subnets, message] of refused) {
    const answer = await share(site().edge, weight, subnets)
    expect(answer).toMatchObject({ status: 400, code: 'invalid' })
    expect(answer.text).toContain(message)
  }
})
