import { execFileSync } from 'node:child_process'
import { createHash, createPublicKey, randomBytes, verify } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { type EnrolResponse, uplinkVersion } from '@bootfarm/proto/uplink'
import { verifyText } from '@bootfarm/proto/uplink-signature'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { EdgeClient } from '../../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { createTenant, makeJoinToken, type TestTenant } from '../../../test/test-tenant.ts'

const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-updates-'))
const repository = path.join(scratch, 'repository')
const script = path.join(import.meta.dirname, '../../../../../scripts/release/repository.mjs')
const program = Buffer.from(`\x7fELF${'\0'.repeat(14)}\x3e\0bootfarm release mark: 0.2.0 x86_64\n`, 'latin1')
const sha256 = createHash('sha256').update(program).digest('hex')
const target = `bootfarm-edge/0.2.0/x86_64/${sha256}.bootfarm-edge`
const timestampKey = path.join(scratch, 'timestamp.pem')
const dayMs = 86_400_000
let api: TestApi
let tenant: TestTenant
let edge: EdgeClient

interface Metadata {
  signatures: { keyid: string; sig: string }[]
  signed: { version: number; expires: string; meta: unknown }
}

beforeAll(async () => {
  const keys = ['targets', 'snapshot', 'timestamp'].flatMap((role) => [`--${role}`, path.join(scratch, `${role}.pem`)])
  writeFileSync(path.join(scratch, 'program'), program)
  const run = (command: string, ...words: string[]) =>
    execFileSync(process.execPath, [script, command, '--repository', repository, ...keys, ...words])
  run('root', '--root', path.join(scratch, 'root.pem'))
  run('add', path.join(scratch, 'program'))
  api = await startTestApi({
    change: (options) => ({ ...options, updates: { directory: repository, timestampKey } }),
  })
})
beforeEach(async () => {
  tenant = await createTenant(api, `own-${randomBytes(6).toString('hex')}`)
  edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  // The metadata are from now.
  api.clock.now = new Date()
})
afterAll(async () => {
  await api.close()
  rmSync(scratch, { recursive: true })
})

const get = (name: string) => edge.send({ method: 'GET', path: `/edge/v1/update/${name}` })
const kept = (name: string) => readFileSync(path.join(repository, 'metadata', name), 'utf8')

test('an edge gets the metadata as they were signed, and the program that they name', async () => {
  for (const name of ['1.root.json', '1.targets.json', '1.snapshot.json', 'timestamp.json'])
    expect(await get(`metadata/${name}`)).toEqual({ status: 200, body: JSON.parse(kept(name)) })
  const file = `/edge/v1/update/targets/${target}`
  const answer = await fetch(api.url + file, {
    headers: { ...edge.signatureOf('GET', file), 'bootfarm-uplink': `${uplinkVersion}` },
  })
  expect(Buffer.from(await answer.arrayBuffer()).toString('latin1')).toBe(program.toString('latin1'))
})

test('what is not there, and what leads elsewhere, is not found', async () => {
  const names = [
    'metadata/2.root.json',
    'metadata/..%2f..%2froot.pem',
    'metadata/root.json',
    'targets/..%2f..%2froot.pem',
  ]
  for (const name of [...names, `targets/${target.replace(sha256, '0'.repeat(64))}`, 'targets/bootfarm-edge'])
    expect(await get(name)).toMatchObject({ status: 404 })
})

test('nobody but an enrolled edge gets anything', async () => {
  for (const file of ['update/metadata/timestamp.json', `update/targets/${target}`])
    expect((await fetch(`${api.url}/edge/v1/${file}`)).status).toBe(401)
  await api.db.edge.updateMany({ where: { id: edge.edgeId }, data: { revokedAt: new Date() } })
  expect(await get('metadata/timestamp.json')).toMatchObject({ status: 403, body: { code: 'edge_revoked' } })
})

test('the timestamp is signed again before it expires, and not before half of its life', async () => {
  const before = JSON.parse(kept('timestamp.json')) as Metadata
  api.clock.advance(3 * dayMs)
  expect(await get('metadata/timestamp.json')).toMatchObject({ body: { signed: { version: before.signed.version } } })
  api.clock.advance(30 * dayMs)
  const { body } = await get('metadata/timestamp.json')
  const renewed = body as unknown as Metadata
  expect(renewed.signed.version).toBe(before.signed.version + 1)
  expect(Date.parse(renewed.signed.expires)).toBeGreaterThan(api.clock.now.getTime() + 6 * dayMs)
  expect(renewed.signed.meta).toEqual(before.signed.meta)
  const [signature] = renewed.signatures
  expect(signature?.keyid).toBe(before.signatures[0]?.keyid)
  // The keys of every object are in order as they come, which is the canonical form here.
  const text = Buffer.from(JSON.stringify(renewed.signed))
  const key = createPublicKey(readFileSync(timestampKey))
  expect(verify(null, text, key, Buffer.from(signature?.sig ?? '', 'hex'))).toBe(true)
  expect(JSON.parse(kept('timestamp.json'))).toEqual(renewed)
})

test('the time is signed for the nonce of the request, by the key that the edge has pinned', async () => {
  const { signingKey } = (await edge.enrol(await makeJoinToken(api, tenant))).body as unknown as EnrolResponse
  const nonce = randomBytes(32).toString('base64')
  const ask = (body: unknown) => edge.send({ method: 'POST', path: '/edge/v1/time', body: JSON.stringify(body) })
  const { status, body } = await ask({ nonce })
  const unixMs = api.clock.now.getTime()
  expect({ status, body }).toMatchObject({ status: 200, body: { nonce, unixMs } })
  const text = `bootfarm-time-v1\n${nonce}\n${unixMs}\n`
  expect(verifyText(text, String(body?.signature), signingKey.publicKey)).toBe(true)
  expect(await ask({ nonce: 'AAAA' })).toMatchObject({ status: 400, body: { code: 'invalid_body' } })
})
