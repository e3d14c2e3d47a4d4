import { createHash, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { publicKeyOf } from '@bootfarm/proto/uplink-signature'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-releases-'))
const { privateKey } = generateKeyPairSync('ed25519')
const seed = privateKey.export({ format: 'der', type: 'pkcs8' }).subarray(-32)
const publicKey = publicKeyOf(seed)
const program = Buffer.alloc(100_000, 'bootfarm')
let api: TestApi

beforeAll(async () => {
  api = await startTestApi({ installation: { directory, publicKey, url: 'https://boot.example.test' } })
})
beforeEach(() => release())
afterAll(async () => {
  await api.close()
  rmSync(directory, { recursive: true })
})

/** Puts a signed release there, as scripts/release does. */
function release(changes: { key?: Parameters<typeof createPrivateKey>[0]; program?: Buffer; directory?: string } = {}) {
  const named = changes.directory ? (changes.program ?? program) : program
  const sha256 = createHash('sha256').update(named).digest('hex')
  const text = `bootfarm-edge-release-v1\n0.1.0\nx86_64\n${sha256}\n${named.length}\n`
  const key = changes.key ? createPrivateKey(changes.key) : privateKey
  const folder = path.join(changes.directory ?? directory, 'x86_64')
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'bootfarm-edge'), changes.program ?? program)
  writeFileSync(path.join(folder, 'release'), text)
  writeFileSync(path.join(folder, 'release.sig'), `${sign(null, Buffer.from(text), key).toString('base64')}\n`)
}

const get = (name: string, headers: Record<string, string> = {}, method = 'GET') =>
  fetch(`${api.url}/install/${name}`, { headers, method })

describe('the program', () => {
  test('is handed out whole, in parts, and not again to who has it', async () => {
    const whole = await get('edge/x86_64')
    expect(Buffer.from(await whole.arrayBuffer()).equals(program)).toBe(true)
    expect(whole.headers.get('content-type')).toBe('application/octet-stream')
    const etag = whole.headers.get('etag') ?? ''
    expect((await get('edge/x86_64', { 'if-none-match': etag, 'cache-control': 'max-age=0' })).status).toBe(304)
    const part = await get('edge/x86_64', { range: 'bytes=99990-' })
    expect([part.status, part.headers.get('content-range')]).toEqual([206, 'bytes 99990-99999/100000'])
    expect(Buffer.from(await part.arrayBuffer()).equals(program.subarray(99_990))).toBe(true)
    const head = await get('edge/x86_64', {}, 'HEAD')
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '100000', ''])
    expect((await get('edge/x86_64', { range: 'bytes=200000-' })).status).toBe(416)
  })

  test.each([
    ['aarch64', /no edge program for aarch64\. Build it \(zig build -Darch=aarch64\)/],
    ['mips', /Edges exist for x86_64 and aarch64 only/],
    ['..%2f..%2fetc%2fpasswd', /Edges exist for x86_64 and aarch64 only/],
  ])('for %s is not there, and it is said what to do', async (arch, detail) => {
    const answer = await get(`edge/${arch}`)
    expect(answer.headers.get('content-type')).toContain('application/problem+json')
    expect(await answer.json()).toMatchObject({
      status: 404,
      code: 'not_found',
      detail: expect.stringMatching(detail),
    })
  })

  test.each([
    ['another program', { program: Buffer.alloc(100_000, 'other') }, /does not match its release/],
    [
      'a signature of another key',
      { key: generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }) },
      /not signed by BOOTFARM_RELEASE_KEY/,
    ],
  ])('is not handed out beside %s', async (_what, changes, detail) => {
    release(changes)
    for (const name of ['edge/x86_64', 'edge/x86_64/release', 'edge/x86_64/release.sig']) {
      const answer = await get(name)
      expect(await answer.json()).toMatchObject({ status: 503, detail: expect.stringMatching(detail) })
      expect(answer.headers.get('retry-after')).toBe('5')
    }
  })
})

test('the script knows its control plane and the release key, and holds nothing else of it', async () => {
  const script = await (await get('edge.sh')).text()
  expect(script).toContain("control_url='https://boot.example.test'")
  expect(script).toContain(`release_key='${publicKey}'`)
  expect(script).not.toMatch(/@[A-Z_]+@/)
  expect(script.endsWith('main "$@" </dev/null; exit\n')).toBe(true)
})

test('downloads that do not proceed are ended, and one address takes the places of no other', async () => {
  const large = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-releases-'))
  // More than the buffers of a connection hold.
  release({ directory: large, program: Buffer.alloc(40_000_000, 'bootfarm') })
  const slow = await startTestApi({
    installation: { directory: large, publicKey, url: 'https://boot.example.test' },
    change: (options) => ({ ...options, downloadCheckMs: 2_000 }),
  })
  const { port } = new URL(slow.url)
  const silent = Array.from({ length: 4 }, () => connect(Number(port), '127.0.0.1'))
  const statusOf = (localAddress: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const headers = { range: 'bytes=0-9' }
      const path = '/install/edge/x86_64'
      request({ host: '127.0.0.1', port, path, localAddress, headers, agent: false }, (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode))
      })
        .on('error', reject)
        .end()
    })
  try {
    for (const socket of silent) {
      socket.on('error', () => undefined)
      socket.write('GET /install/edge/x86_64 HTTP/1.1\r\nhost: x\r\n\r\n')
      await once(socket, 'readable')
    }
    expect(await statusOf('127.0.0.1')).toBe(503)
    expect(await statusOf('127.0.0.2')).toBe(206)
    await expect.poll(() => statusOf('127.0.0.1'), { interval: 500 }).toBe(206)
  } finally {
    for (const socket of silent) socket.destroy()
    await slow.close()
    rmSync(large, { recursive: true })
  }
})

test('a control plane without releases names the missing setting', async () => {
  const bare = await startTestApi()
  try {
    const answer = await fetch(`${bare.url}/install/edge.sh`)
    expect(await answer.json()).toMatchObject({
      status: 503,
      detail: expect.stringContaining('BOOTFARM_RELEASE_KEY'),
    })
  } finally {
    await bare.close()
  }
})
