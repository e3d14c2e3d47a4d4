import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import http from 'node:http'
import type net from 'node:net'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { patterned } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Job {
  state: string
  sourceUrl: string | null
  untrusted: { message: string | null }
}
interface Made {
  id: string
  jobIds: [string]
}

const mib = 1 << 20
const image = Buffer.concat(
  Array.from({ length: 6 }, (_, at) => Buffer.concat([Buffer.from([at]), patterned(mib - 1)])),
)
const sha256 = createHash('sha256').update(image).digest('hex')
const scratch = scratchDirectory()
let plane: ControlPlane
let edge: ControlledEdge
let server: http.Server
let origin: string
let requests: http.IncomingMessage[] = []
/** What a path answers with instead of the image. */
const answers: Record<string, (request: http.IncomingMessage, answer: http.ServerResponse) => void> = {}

beforeAll(async () => {
  server = http.createServer((request, answer) => {
    requests.push(request)
    const own = answers[(request.url ?? '').replace(/\?.*/, '')]
    if (own) own(request, answer)
    else sendPart(request, answer)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  origin = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`
  plane = await ControlPlane.start(path.join(scratch.path, 'plane'))
  edge = await ControlledEdge.start(plane, scratch.path, ['--import-from', '127.0.0.1'])
  const store = path.join(edge.data, 'store')
  const init = new RunningProcess(edgeProgram, ['vdisk', 'init', '--beside-files', '--store', store])
  expect(await init.ended, init.output).toBe(0)
  await edge.restart()
})
afterAll(async () => {
  await edge?.stop()
  await plane?.stop()
  server?.close()
  scratch.remove()
})
beforeEach(() => {
  requests = []
})

/** As a web server does: a part for a range, unless `If-Range` names another content. */
function sendPart(request: http.IncomingMessage, answer: http.ServerResponse, { bytes = image, tag = '"one"' } = {}) {
  const [, first = '', last = ''] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
  const isOther = request.headers['if-range'] !== undefined && request.headers['if-range'] !== tag
  if (first === '' || isOther) return void answer.writeHead(200, { etag: tag }).end(bytes)
  const part = bytes.subarray(Number(first), Number(last) + 1)
  const range = `bytes ${first}-${Number(first) + part.length - 1}/${bytes.length}`
  answer.writeHead(206, { 'content-range': range, 'content-length': part.length, etag: tag }).end(part)
}

async function importOf(url: string, more: object = {}): Promise<{ made: Made; job: Job }> {
  const made = await beginImport(url, more)
  return { made, job: await endOf(made) }
}

function beginImport(url: string, more: object): Promise<Made> {
  const { vdiskId } = edge.tenant
  const input = { vdiskId, edgeId: edge.edgeId, url, bootFiles: 'none', ...more }
  return edge.api.mutate<Made>('version.import', input)
}

async function endOf({ jobIds: [jobId] }: Made): Promise<Job> {
  for (;;) {
    const job = await edge.api.query<Job>('storeJob.get', { jobId })
    if (job.state !== 'queued' && job.state !== 'running') return job
    if (!edge.process.isRunning) throw new Error(edge.process.output)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

test('an edge fetches an image through redirects and cuts, and imports it', async () => {
  let cuts = 0
  answers['/moved'] = (_request, answer) => answer.writeHead(302, { location: '/images/linux.raw?part=1' }).end()
  answers['/images/linux.raw'] = (request, answer) => {
    // The third part is cut in its middle, twice.
    if (requests.length < 5 || cuts === 2) return sendPart(request, answer)
    cuts += 1
    answer.writeHead(206, { 'content-range': `bytes 0-9/${image.length}`, 'content-length': 1000 }).write('cut')
    request.socket.destroy()
  }
  const { made, job } = await importOf(`${origin}/moved?signature=secret`, { sha256 })
  expect(job, job.untrusted.message ?? '').toMatchObject({ state: 'done', sourceUrl: `${origin}/moved` })
  expect(cuts).toBe(2)
  // No part was fetched twice but the one that was cut.
  const firsts = requests.map(({ headers }) => headers.range?.split('-')[0]).slice(2)
  expect(firsts.length - new Set(firsts).size).toBe(2)
  const out = path.join(scratch.path, 'out.raw')
  const store = path.join(edge.data, 'store')
  const args = ['vdisk', 'export', out, '--version', made.id, '--store', store]
  const exported = new RunningProcess(edgeProgram, args)
  expect(await exported.ended, exported.output).toBe(0)
  const compared = new RunningProcess('sha256sum', [out])
  expect(await compared.ended).toBe(0)
  expect(compared.output).toContain(sha256)
})

test.each([
  ['continues where it was', '"one"', /^bytes=(16|17|18|19)\d{6}-/],
  ['starts again if the file was replaced meanwhile', '"two"', /^bytes=0-/],
])('after a restart of the edge a fetch %s', async (title, tag, firstRange) => {
  const large = Buffer.concat([image, image, image, image])
  const before = Buffer.concat([image, image, image, Buffer.alloc(image.length, title)])
  const wanted = tag === '"one"' ? before : large
  const name = `/large-${tag.slice(1, -1)}`
  let isHeld = true
  let hold = () => {}
  const held = new Promise<void>((resolve) => {
    hold = resolve
  })
  answers[name] = (request, answer) => {
    const first = Number(/^bytes=(\d+)/.exec(request.headers.range ?? '')?.[1])
    if (!isHeld) return sendPart(request, answer, { bytes: wanted, tag })
    // More than one of the pieces that are kept; this one gets no answer.
    if (first > 20 * mib) return hold()
    sendPart(request, answer, { bytes: before, tag: '"one"' })
  }
  const digest = createHash('sha256').update(wanted).digest('hex')
  const made = await beginImport(`${origin}${name}`, { sha256: digest })
  await held
  isHeld = false
  requests = []
  await edge.restart()
  const job = await endOf(made)
  expect(job, job.untrusted.message ?? '').toMatchObject({ state: 'done' })
  const ranges = requests.filter(({ url }) => url === name).map(({ headers }) => headers.range)
  // A replaced file is recognized by the first answer; then all of it is fetched.
  expect(ranges[tag === '"one"' ? 0 : 1]).toMatch(firstRange)
})

test('a file that is replaced while it is fetched is fetched again from its start', async () => {
  const other = Buffer.from(image).reverse()
  answers['/changing'] = (request, answer) => {
    const isLater = requests.length > 3
    sendPart(request, answer, isLater ? { bytes: other, tag: '"two"' } : { bytes: image, tag: '"one"' })
  }
  const wanted = createHash('sha256').update(other).digest('hex')
  const { job } = await importOf(`${origin}/changing`, { sha256: wanted })
  expect(job, job.untrusted.message ?? '').toMatchObject({ state: 'done' })
})

test('addresses that the edge may not fetch from are refused, also behind a redirect and in other forms', async () => {
  const port = new URL(origin).port
  answers['/away'] = (_request, answer) => answer.writeHead(302, { location: `http://127.0.0.2:${port}/x` }).end()
  const messages: string[] = []
  for (const url of [
    `http://127.0.0.2:${port}/x`,
    `${origin}/away`,
    `http://[::1]:${port}/x`,
    `http://[::ffff:127.0.0.2]:${port}/x`,
    'http://10.0.0.1/x',
    'http://169.254.169.254/x',
    'http://0.0.0.0/x',
  ]) {
    const { job } = await importOf(url)
    expect(job, url).toMatchObject({ state: 'failed' })
    messages.push(job.untrusted.message ?? '')
  }
  expect(messages[0]).toContain('127.0.0.2')
  for (const message of messages) expect(message).toContain('this edge may not fetch from there')
  // Only the redirect itself was asked for.
  expect(requests.map(({ url }) => url)).toEqual(['/away'])
})

test('answers that nothing can be made of, and other bytes than announced, fail with a sentence', async () => {
  answers['/gone'] = (_request, answer) => answer.writeHead(404).end()
  answers['/secret'] = (_request, answer) => answer.writeHead(401).end()
  answers['/whole'] = (_request, answer) => answer.writeHead(200).end(image)
  answers['/round'] = (_request, answer) => answer.writeHead(302, { location: '/round' }).end()
  answers['/file'] = (_request, answer) => answer.writeHead(302, { location: 'file:///etc/passwd' }).end()
  const failure = async (where: string, more: object = {}) => {
    const { job } = await importOf(`${origin}${where}`, more)
    expect(job.state).toBe('failed')
    return job.untrusted.message
  }
  expect(await failure('/gone')).toContain('has no such file (HTTP status 404)')
  expect(await failure('/secret')).toContain('refused to send the image (HTTP status 401)')
  expect(await failure('/whole')).toContain('without HTTP ranges')
  expect(await failure('/round')).toContain('leads on again and again')
  expect(await failure('/file')).toContain('no URL which an edge fetches')
  expect(await failure('/x', { sha256: sha256.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) })).toContain(
    'have another SHA-256 than the import names',
  )
  const fetched = path.join(edge.data, 'store/imports/.fetched')
  while (existsSync(fetched) && readdirSync(fetched).length > 0) {
    if (!edge.process.isRunning) throw new Error(edge.process.output)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
})
