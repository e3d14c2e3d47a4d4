import { randomUUID } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createPerson, createTenant, makeJoinToken, type TestTenant } from '@bootfarm/api/testing/tenant'
import { createDb } from '@bootfarm/db'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ApiClient } from '../lib/control-plane/api-client.ts'
import { Authority } from '../lib/control-plane/certificates.ts'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { HostileTls, hostileAnswers } from '../lib/control-plane/hostile-tls.ts'
import { HttpProxy } from '../lib/control-plane/http-proxy.ts'
import { TlsFront } from '../lib/control-plane/tls-front.ts'
import { edgeAddress, edgePorts, portArguments, untilListening } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

/** A name that only the proxy of a site resolves. */
const controlHost = 'control.bootfarm.test'
/** `enrol` waits this long for an answer. */
const answerLimitMs = 20_000
const scratch = scratchDirectory()
let plane: ControlPlane
let tenant: TestTenant
let api: ApiClient
let authority: Authority
/** For `localhost`, and for `controlHost`. */
let front: TlsFront
let namedFront: TlsFront
let proxy: HttpProxy
const clock = { now: new Date(), advance: () => {}, read: () => new Date() }

beforeAll(async () => {
  plane = await ControlPlane.start(scratch.path)
  const db = createDb(plane.databaseUrl)
  tenant = await createTenant({ db, clock }, `tls-${process.pid}`)
  const person = await createPerson({ db }, tenant.organizationId, 'admin')
  await db.$disconnect()
  api = await ApiClient.signIn(plane.webUrl, person.email, person.password)
  authority = new Authority(scratch.path, 'authority')
  front = await TlsFront.open(plane.apiUrl, authority.certify('localhost'))
  namedFront = await TlsFront.open(plane.apiUrl, authority.certify(controlHost))
})
beforeEach(async () => {
  await proxy?.close()
  proxy = await HttpProxy.open()
  proxy.ports.set(controlHost, namedFront.port)
})
afterAll(async () => {
  await front?.close()
  await namedFront?.close()
  await proxy?.close()
  await plane?.stop()
  scratch.remove()
})

async function newToken(): Promise<string> {
  const db = createDb(plane.databaseUrl)
  try {
    return await makeJoinToken({ db, clock }, tenant)
  } finally {
    await db.$disconnect()
  }
}

interface Enrolment {
  url: string
  options?: string[]
  env?: Record<string, string>
}

/** Runs `enrol` with a fresh token and data directory. */
async function enrol({ url, options = [], env = {} }: Enrolment) {
  const data = path.join(scratch.path, randomUUID())
  const token = path.join(scratch.path, `${randomUUID()}.token`)
  writeFileSync(token, await newToken())
  const args = ['enrol', '--url', url, '--token-file', token, '--data', data, ...options]
  const command = new RunningProcess(edgeProgram, args, env)
  const code = await command.ended
  return { code, output: command.output, data, isEnrolled: existsSync(path.join(data, 'identity.json')) }
}

async function refused(enrolment: Enrolment): Promise<string> {
  const { code, output, isEnrolled } = await enrol(enrolment)
  expect({ code, isEnrolled, lines: output.trim().split('\n').length }, output).toEqual({
    code: 1,
    isEnrolled: false,
    lines: 1,
  })
  return output
}

async function serve(data: string, options: string[], env: Record<string, string> = {}) {
  const ports = await edgePorts()
  const listening = ['--listen', edgeAddress, '--dhcp', 'off', ...portArguments(ports)]
  const edge = new RunningProcess(edgeProgram, ['serve', '--data', data, ...listening, ...options], env)
  await untilListening(edge, ports.http)
  return edge
}

async function until(edge: RunningProcess, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) {
    if (!edge.isRunning) throw new Error(edge.output)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Serves until the control plane has its heartbeat and it has a state. */
async function comesOnline(data: string, options: string[], env: Record<string, string> = {}): Promise<void> {
  const edge = await serve(data, options, env)
  await until(edge, async () => {
    const { items } = await api.query<{ items: { online: boolean }[] }>('edge.list', { siteId: tenant.siteId })
    return items.some(({ online }) => online) && existsSync(path.join(data, 'state.json'))
  })
  await edge.stop()
  expect(edge.output).not.toMatch(/does not answer/)
}

const localhost = () => `https://localhost:${front.port}`

describe('with a certificate of a private authority', () => {
  test('an edge that is given the authority enrols, is online, and has its state', async () => {
    const options = ['--ca-file', authority.caFile]
    const { code, output, data } = await enrol({ url: localhost(), options })
    expect(code, output).toBe(0)
    await comesOnline(data, options)
    for (const part of ['/edge/v1/enrol', '/edge/v1/state', '/edge/v1/heartbeat'])
      expect(front.paths.some((one) => one.startsWith(part))).toBe(true)
    const unsaid = new RunningProcess(edgeProgram, ['doctor', '--data', data, '--listen', edgeAddress])
    await unsaid.ended
    expect(unsaid.output).toMatch(/cannot be reached: its certificate is not from an authority that is trusted here/)
    const doctor = new RunningProcess(edgeProgram, ['doctor', '--data', data, '--listen', edgeAddress, ...options])
    await doctor.ended
    expect(doctor.output).toMatch(/answers and knows this edge/)
  })

  test('an edge that is not given it, or another one, does not enrol', async () => {
    const other = new Authority(scratch.path, 'other')
    for (const options of [[], ['--ca-file', other.caFile]])
      expect(await refused({ url: localhost(), options })).toMatch(
        /its certificate is not from an authority that is trusted here.*--ca-file/,
      )
  })

  test.each<[string, () => { certificate: ReturnType<Authority['certify']> }, RegExp]>([
    ['has expired', () => ({ certificate: authority.certify('localhost', -1) }), /its certificate has expired/],
    ['is for another name', () => ({ certificate: authority.certify('elsewhere.test') }), /for another name/],
  ])('one that %s is refused', async (_what, make, sentence) => {
    const wrong = await TlsFront.open(plane.apiUrl, make().certificate)
    try {
      const url = `https://localhost:${wrong.port}`
      expect(await refused({ url, options: ['--ca-file', authority.caFile] })).toMatch(sentence)
      expect(wrong.paths).toEqual([])
    } finally {
      await wrong.close()
    }
  })

  test('a file that has no authority is named before anything is sent', async () => {
    const empty = path.join(scratch.path, 'empty.pem')
    writeFileSync(empty, 'not a certificate\n')
    const damaged = path.join(scratch.path, 'damaged.pem')
    writeFileSync(damaged, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
    const before = front.paths.length
    for (const [file, sentence] of [
      [empty, /empty\.pem has no certificate that can be used/],
      [damaged, /damaged\.pem has no certificate that can be used/],
      [path.join(scratch.path, 'absent.pem'), /absent\.pem cannot be read/],
    ] as const)
      expect(await refused({ url: localhost(), options: ['--ca-file', file] })).toMatch(sentence)
    expect(front.paths).toHaveLength(before)
  })

  test('a redirect out of TLS is not followed', async () => {
    front.redirectTo = `${plane.apiUrl}/edge/v1/enrol`
    try {
      const output = await refused({ url: localhost(), options: ['--ca-file', authority.caFile] })
      expect(output).toMatch(/redirects to "http:\/\/.*Redirects are not followed/)
    } finally {
      front.redirectTo = undefined
    }
  })
})

describe('with a machine on the path that needs no key', () => {
  test.each(Object.entries(hostileAnswers))('%s fails the request and nothing else', async (_what, answer) => {
    const hostile = await HostileTls.open(answer)
    try {
      const output = await refused({ url: `https://localhost:${hostile.port}` })
      expect(output).toMatch(/cannot be reached: (its TLS handshake cannot be read|TLS failed)/)
      expect(hostile.answered).toBeGreaterThan(0)
    } finally {
      await hostile.close()
    }
  })

  test('names in a certificate that run beyond its end fail the request and nothing else', async () => {
    const certificate = authority.certify('localhost', 2, 'DER:30:7f:82:01:61')
    const wrong = await TlsFront.open(plane.apiUrl, certificate)
    try {
      const url = `https://localhost:${wrong.port}`
      expect(await refused({ url, options: ['--ca-file', authority.caFile] })).toMatch(/handshake cannot be read/)
      expect(wrong.paths).toEqual([])
    } finally {
      await wrong.close()
    }
  })

  test('an edge that serves is online again when the machine has gone', async () => {
    const certificate = authority.certify('localhost')
    const trusted = ['--ca-file', authority.caFile]
    let own = await TlsFront.open(plane.apiUrl, certificate)
    const { port } = own
    const { code, output, data } = await enrol({ url: `https://localhost:${port}`, options: trusted })
    expect(code, output).toBe(0)
    await own.close()
    const hostile = await HostileTls.open(hostileAnswers['a certificate that is longer than the message'], port)
    const edge = await serve(data, trusted)
    await until(edge, () => hostile.answered >= 3)
    await hostile.close()
    own = await TlsFront.open(plane.apiUrl, certificate, port)
    try {
      await until(edge, () => own.paths.includes('/edge/v1/heartbeat') && existsSync(path.join(data, 'state.json')))
      await edge.stop()
      expect(edge.output).toMatch(/its TLS handshake cannot be read/)
    } finally {
      await own.close()
    }
  })
})

describe('without TLS', () => {
  test('a control plane on another machine is refused, at enrolment and by serve, unless the risk is named', async () => {
    const url = `http://${controlHost}:${new URL(plane.apiUrl).port}`
    proxy.ports.set(controlHost, Number(new URL(plane.apiUrl).port))
    const options = ['--proxy', `http://${proxy.host}`]
    expect(await refused({ url, options })).toMatch(/is not encrypted.*--insecure-uplink/)
    expect(proxy.asked).toEqual([])
    const insecure = [...options, '--insecure-uplink']
    const { code, output, data } = await enrol({ url, options: insecure })
    expect(code, output).toBe(0)
    expect(proxy.asked).toContain(`POST ${url}/edge/v1/enrol`)
    const serve = new RunningProcess(edgeProgram, ['serve', '--data', data, '--listen', edgeAddress, ...options])
    expect(await serve.ended).toBe(1)
    expect(serve.output).toMatch(/is not encrypted.*--rejoin.*--insecure-uplink/)
    await comesOnline(data, insecure)
  })
})

describe('through a proxy', () => {
  const url = () => `https://${controlHost}:8443`
  const trusted = () => ['--ca-file', authority.caFile]

  test('an edge enrols and is online by a tunnel, whether an option or the environment names the proxy', async () => {
    const named = [...trusted(), '--proxy', proxy.host]
    const { code, output, data } = await enrol({ url: url(), options: named })
    expect(code, output).toBe(0)
    const env = { HTTPS_PROXY: `http://${proxy.host}` }
    await comesOnline(data, trusted(), env)
    const before = proxy.asked.length
    expect((await enrol({ url: url(), options: trusted(), env })).code).toBe(0)
    expect(proxy.asked.length).toBeGreaterThan(before)
    expect(new Set(proxy.asked)).toEqual(new Set([`CONNECT ${controlHost}:8443`]))
  })

  test('a password is sent to the proxy, and asked for where it is missing', async () => {
    proxy.password = 'site:p@ss'
    expect(await refused({ url: url(), options: [...trusted(), '--proxy', proxy.host] })).toMatch(
      /the proxy requires a password/,
    )
    const named = ['--proxy', `http://site:p%40ss@${proxy.host}`]
    const { code, output } = await enrol({ url: url(), options: [...trusted(), ...named] })
    expect(code, output).toBe(0)
  })

  test('one that refuses or is absent is named, and nothing goes past it', async () => {
    proxy.ports.clear()
    const options = [...trusted(), '--proxy', proxy.host]
    const before = namedFront.paths.length
    expect(await refused({ url: url(), options })).toMatch(/the proxy refuses to connect to it/)
    // A loopback URL would be reachable without it.
    const gone = proxy.host
    await proxy.close()
    proxy = await HttpProxy.open()
    expect(await refused({ url: localhost(), options: [...trusted(), '--proxy', gone] })).toMatch(
      /the proxy does not accept a connection/,
    )
    expect(namedFront.paths).toHaveLength(before)
  })

  test('one that never answers costs no more than the limit of an answer', async () => {
    proxy.isSilent = true
    const before = performance.now()
    expect(await refused({ url: url(), options: [...trusted(), '--proxy', proxy.host] })).toMatch(
      /the proxy does not answer/,
    )
    // A bound, no measurement: the next limit would be the system's, after minutes.
    expect(performance.now() - before).toBeLessThan(3 * answerLimitMs)
  })

  test('the proxy itself is an HTTP proxy with a host', async () => {
    for (const wrong of ['https://a:1', 'socks5://a:1', 'http://'])
      expect(await refused({ url: url(), options: ['--proxy', wrong] })).toMatch(/--proxy is /)
  })
})
