import dgram from 'node:dgram'
import net from 'node:net'
import path from 'node:path'
import { hostileTexts } from '@bootfarm/api/testing/hostile-strings'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { edgeAddress } from '../lib/edge/loopback-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

// Sends hostile devices' real packets, and checks everything that comes of them: the edge's log and scripts, the API's
// answers, files and log.

/** Encodes a DHCP option (RFC 2132). */
const optionSizeMax = 255
/** Bytes, because not all of it is UTF-8. */
const texts = [
  ...Object.values(hostileTexts),
  'x\nFORGED a line of its own',
  'x\r\n{"forged":true}\r\n',
  '\u001b]8;;http://evil.example/\u0007link',
]
  .map((text) => Buffer.from(text).subarray(0, 200))
  .concat([Buffer.from([0xff, 0xfe, 0x1b, 0x5b, 0x32, 0x4a, 0xc0, 0x80]), Buffer.alloc(200, 0x0a)])
const strangers = texts.map((_, index) => `02:bf:00:00:66:${index.toString(16).padStart(2, '0')}`)

/** Moves a terminal, starts a line, or reverses text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
const bending = /[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/

const scratch = scratchDirectory()
let plane: ControlPlane

beforeAll(async () => {
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'))
})
afterAll(async () => {
  await plane?.stop()
  scratch.remove()
})

function discover(mac: string, xid: number, text: Buffer): Buffer {
  const head = Buffer.alloc(240)
  head.set([1, 1, 6, 0])
  head.writeUInt32BE(xid, 4)
  Buffer.from(mac.replaceAll(':', ''), 'hex').copy(head, 28)
  // The old fields for server name and file, and the options that carry a device's own text.
  text.copy(head, 44, 0, 63)
  text.copy(head, 108, 0, 127)
  head.set([99, 130, 83, 99], 236)
  const option = (code: number, ...value: Buffer[]) => {
    const bytes = Buffer.concat(value).subarray(0, optionSizeMax)
    return Buffer.concat([Buffer.from([code, bytes.length]), bytes])
  }
  return Buffer.concat([
    head,
    option(53, Buffer.from([1])),
    option(60, Buffer.from('PXEClient:Arch:00000:'), text),
    option(93, Buffer.from([0, 0])),
    option(12, text),
    option(61, Buffer.from([0]), text),
    option(77, text),
    option(43, text),
    option(81, Buffer.from([0, 0, 0]), text),
    Buffer.from([255]),
  ])
}

/** RFC 1350, and options of RFC 2347. */
const readRequest = (...words: Buffer[]) =>
  Buffer.concat([Buffer.from([0, 1]), ...words.flatMap((word) => [word, Buffer.from([0])])])

/** Sends each packet from its own socket to anyone who may answer. */
async function send(port: number, packets: Buffer[]): Promise<void> {
  const socket = dgram.createSocket('udp4')
  for (const packet of packets)
    await new Promise<void>((resolve) => socket.send(packet, port, edgeAddress, () => resolve()))
  socket.close()
}

/** Collects the answer to these bytes until the connection is closed. */
function answerTo(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, edgeAddress, () => socket.end(bytes))
    let answer = ''
    socket.on('data', (data) => {
      answer += data.toString('latin1')
    })
    // A connection that is cut while it still sends ends in an error.
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(answer))
  })
}

const request = (start: Buffer, agent: Buffer, body = Buffer.alloc(0)) =>
  Buffer.concat([
    start,
    Buffer.from(` HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\nUser-Agent: `),
    agent,
    Buffer.from('\r\nReferer: '),
    agent,
    Buffer.from('\r\n\r\n'),
    body,
  ])
/** The bytes that a header may hold: a request with any other is refused. */
const printable = (text: Buffer) => Buffer.from(text.toString('latin1').replace(/[^\x20-\x7e]/g, '?'), 'latin1')

/** Every device of the site boots, reports its identity, requests what does not exist, and fails with its own text. */
async function behaveBadly({ ports, tenant }: ControlledEdge): Promise<string[]> {
  const scripts: string[] = []
  for (const [index, mac] of tenant.macs.entries()) {
    const [text = Buffer.alloc(0), other = text] = [texts[index * 4], texts[index * 4 + 1]]
    await send(ports.dhcp, [discover(mac, 0x7700 + index, text)])
    const start = Buffer.from(`GET /m/${mac}/boot.ipxe`)
    // The edge knows its devices shortly after it listens.
    const script = await eventually(async () => {
      const answer = await answerTo(ports.http, request(start, printable(other)))
      return answer.includes('/b/') ? answer : undefined
    })
    const handle = /\/b\/([0-9a-f]{16})/.exec(script)?.[1]
    scripts.push(script, await answerTo(ports.http, request(Buffer.from(`GET /b/${handle}/grub.cfg`), printable(text))))
    const failed = Buffer.from(`POST /b/${handle}/failed`)
    const body = Buffer.concat([Buffer.from('no_root '), other.subarray(0, 200)])
    expect(await answerTo(ports.http, request(failed, printable(text), body))).toMatch(/^HTTP\/1\.1 204 /)
  }
  await send(
    ports.dhcp,
    texts.map((text, index) => discover(strangers[index] ?? '', 0x6600 + index, text)),
  )
  const octet = Buffer.from('octet')
  await send(
    ports.tftp,
    texts.flatMap((text) => [
      readRequest(text, octet),
      readRequest(Buffer.from('undionly.kpxe'), text, text, text),
      readRequest(Buffer.concat([Buffer.from('grub/'), text]), octet),
      Buffer.concat([Buffer.from([0, 5, 0, 0]), text, Buffer.from([0])]),
    ]),
  )
  for (const text of texts) {
    await answerTo(ports.http, request(Buffer.concat([Buffer.from('GET /'), text]), text))
    await answerTo(ports.http, Buffer.concat([text, Buffer.from(' / HTTP/1.1\r\n\r\n')]))
  }
  return scripts
}

async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

interface Page {
  items: { id: string; mac: string; siteId: string }[]
}

/** Reads all of the API's answers about the boot, once everything is reported. */
async function readEverything({ api, tenant, edgeId }: ControlledEdge): Promise<unknown[]> {
  const found = await eventually(async () => {
    const page = await api.query<Page>('discovered.list', { limit: 100 })
    return page.items.length >= strangers.length ? page : undefined
  })
  const boots = await eventually(async () => {
    const page = await api.query<Page>('boot.list', { limit: 100, outcome: 'failed' })
    return new Set(page.items.map(({ mac }) => mac)).size === tenant.macs.length ? page : undefined
  })
  const { siteId, collectionId } = tenant
  const discoveredIds = found.items.map(({ id }) => id)
  await api.mutate('discovered.adopt', { siteId, discoveredIds, collectionId, namePattern: 'bad-{mac}' })
  return [
    found,
    boots,
    await api.query('edge.get', { edgeId }),
    await api.query('audit.list', { limit: 100 }),
    await api.query('device.list', { limit: 100 }),
    ...(await Promise.all(boots.items.map(({ id }) => api.query('boot.get', { bootId: id })))),
  ]
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => [name, ...stringsIn(inner)])
}

/** No log line is forged, none moves a terminal, and what looks like JSON is. */
function expectHarmlessLines(log: string): void {
  const lines = log.split('\n').map((line) => line.replace(/\t/g, ' '))
  expect(lines.filter((line) => bending.test(line))).toEqual([])
  expect(lines.filter((line) => /^\s*(FORGED|\{"forged|\{"level":50,"msg":"hacked")/.test(line))).toEqual([])
  for (const line of lines.filter((one) => one.startsWith('{'))) expect(() => JSON.parse(line)).not.toThrow()
}

/** Each line begins with an iPXE or GRUB command that the edge writes, and none contains a device's text. */
function expectHarmlessScript(script: string): void {
  const [, body = ''] = script.split('\r\n\r\n')
  expect(script).toMatch(/^HTTP\/1\.1 200 /)
  expect(body).toMatch(/^#!ipxe|menuentry|linux/)
  expect(body).not.toMatch(/hacked|evil\.example|FORGED|\/etc\/passwd|drop table/)
}

describe.each([
  ['in text', []],
  ['in JSON', ['--json']],
])('an edge that logs %s', (name, options) => {
  let edge: ControlledEdge
  let told: unknown[]
  let scripts: string[]

  beforeAll(async () => {
    edge = await ControlledEdge.start(plane, path.join(scratch.path, name.replace(' ', '-')), options)
    scripts = await behaveBadly(edge)
    told = await readEverything(edge)
  })
  afterAll(() => edge?.stop())

  test('writes scripts in its own words alone', () => {
    expect(scripts).toHaveLength(edge.tenant.macs.length * 2)
    for (const script of scripts) expectHarmlessScript(script)
  })

  test('logs one line for each event, none of which a device wrote', async () => {
    expect(edge.process.output).toContain('failed')
    expectHarmlessLines(edge.process.output)
    expect(edge.process.isRunning).toBe(true)
  })

  test("reports devices' text on one line, and the API returns it so", () => {
    const strings = stringsIn(told)
    expect(strings.filter((text) => bending.test(text))).toEqual([])
    for (const text of ['<script>window.hacked=1</script>', 'onerror=window.hacked=1', '; drop table device'])
      expect(strings.some((one) => one.includes(text))).toBe(true)
  })

  test('exported files have no cell that a spreadsheet runs, and no line that a device wrote', async () => {
    for (const path of ['device-exports', 'audit-exports']) {
      const file = await edge.api.text(`/api/v1/${path}`)
      const lines = file.split('\r\n')
      expect(lines.length).toBeGreaterThan(strangers.length)
      expect(lines.filter((line) => bending.test(line.replace('\ufeff', '')))).toEqual([])
      expect(lines.filter((line) => /(^|,)"?[=+\-@]/.test(line))).toEqual([])
    }
  })

  test('makes the API log nothing that a device wrote', () => {
    expectHarmlessLines(plane.api.output)
  })
})
