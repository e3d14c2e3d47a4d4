import assert from 'node:assert/strict'
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.d.ts'

// A tour of the API by the client that openapi-typescript makes. The test compiles it against that client's types.

const { BOOTFARM_URL = '', BOOTFARM_KEY = '', BOOTFARM_COLLECTION = '' } = process.env
const client = createClient<paths>({
  baseUrl: `${BOOTFARM_URL}/api/v1`,
  headers: { authorization: `Bearer ${BOOTFARM_KEY}` },
})

const session = await client.GET('/session')
assert.equal(session.data?.user.name, 'API key tour')

const created = await client.POST('/devices', {
  params: { header: { 'Idempotency-Key': 'tour-of-typescript' } },
  body: { collectionId: BOOTFARM_COLLECTION, name: 'tour-typescript', mac: '02:bf:03:00:00:01' },
})
assert.equal(created.response.status, 201)
const deviceId = created.data?.id ?? ''

const path = { deviceId }
const read = await client.GET('/devices/{deviceId}', { params: { path } })
const device: components['schemas']['Device'] | undefined = read.data
assert.equal(device?.name, 'tour-typescript')
const etag = read.response.headers.get('etag') ?? ''
const again = await client.GET('/devices/{deviceId}', { params: { path, header: { 'If-None-Match': etag } } })
assert.equal(again.response.status, 304)

const ifMatch = { params: { path, header: { 'If-Match': etag } } }
const changed = await client.PATCH('/devices/{deviceId}', { ...ifMatch, body: { enabled: false } })
assert.equal(changed.data?.revision, 2)
const stale = await client.PATCH('/devices/{deviceId}', { ...ifMatch, body: { enabled: true } })
const problem: components['schemas']['Problem'] | undefined = stale.error
assert.deepEqual([stale.response.status, problem?.code, problem?.revision], [412, 'precondition_failed', 2])

const names: string[] = []
let cursor: string | undefined
do {
  const { data } = await client.GET('/devices', { params: { query: { limit: 2, ...(cursor ? { cursor } : {}) } } })
  assert.ok(data)
  names.push(...data.items.map(({ name }) => name))
  cursor = data.nextCursor ?? undefined
} while (cursor)
assert.ok(names.length > 2 && new Set(names).size === names.length)

const file = await client.GET('/device-exports', { params: { query: { format: 'csv' } }, parseAs: 'text' })
assert.match(String(file.data), /tour-typescript/)

const removed = await client.DELETE('/devices/{deviceId}', { params: { path, header: { 'If-Match': '"2"' } } })
assert.equal(removed.data?.name, 'tour-typescript')
const gone = await client.GET('/devices/{deviceId}', { params: { path } })
assert.deepEqual([gone.response.status, gone.error?.code], [404, 'not_found'])
process.stdout.write(`seen ${names.length} devices\n`)
