import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { Tenant } from '../lib/control-plane/tenant.ts'
import { edgePorts, portArguments, untilListening } from '../lib/edge/loopback-edge.ts'
import { edgeProgram, scratchDirectory } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface EdgeDetail {
  online: boolean
  keyRotatedAt: string | null
  keyOrdered: boolean
  desiredState: unknown
  appliedState: unknown
  machine: { processors: number } | null
}

const scratch = scratchDirectory()
const data = path.join(scratch.path, 'edge')
const inData = (name: string) => readFileSync(path.join(data, name), 'utf8')
let tenant: Tenant
let api: ApiClient
let edge: RunningProcess
let edgeId: string

const getEdge = () => api.query<EdgeDetail>('edge.get', { edgeId })
async function until(isSo: (edge: EdgeDetail) => boolean): Promise<EdgeDetail> {
  for (;;) {
    const found = await getEdge()
    if (isSo(found)) return found
    if (!edge.isRunning) throw new Error(edge.output)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
const applied = ({ desiredState, appliedState }: EdgeDetail) =>
  desiredState !== null && JSON.stringify(desiredState) === JSON.stringify(appliedState)

async function start(): Promise<RunningProcess> {
  const ports = await edgePorts()
  const started = new RunningProcess(edgeProgram, [
    'serve',
    '--data',
    data,
    '--listen',
    '127.0.0.1',
    '--dhcp',
    'off',
    ...portArguments(ports),
  ])
  await untilListening(started, ports.http)
  return started
}

beforeAll(async () => {
  tenant = await Tenant.create('admin')
  api = await ApiClient.signIn(required('BOOTFARM_WEB_URL'), tenant.person.email, tenant.person.password)
  const { siteId } = tenant.rows
  const { token } = await api.mutate<{ token: string }>('edge.createJoinToken', { siteId })
  const file = path.join(scratch.path, 'token')
  writeFileSync(file, token, { mode: 0o600 })
  const enrol = new RunningProcess(edgeProgram, [
    'enrol',
    '--url',
    required('BOOTFARM_WEB_URL'),
    '--token-file',
    file,
    '--data',
    data,
  ])
  expect(await enrol.ended, enrol.output).toBe(0)
  edgeId = (JSON.parse(inData('identity.json')) as { edgeId: string }).edgeId
  edge = await start()
})
afterAll(async () => {
  await edge?.stop()
  scratch.remove()
})

test('an edge makes itself a new key when the dashboard or its own operator orders it, and keeps working', async () => {
  const before = inData('edge.key')
  expect((await until(({ online }) => online)).machine?.processors).toBeGreaterThan(0)
  await api.mutate('edge.rotateKey', { edgeId })
  const { keyRotatedAt: first } = await until(({ keyRotatedAt }) => keyRotatedAt !== null)
  await edge.waitFor(/has a new key/)
  const second = inData('edge.key')
  expect(second).not.toBe(before)
  const asked = new RunningProcess(edgeProgram, ['rotate-key', '--data', data])
  expect(await asked.ended).toBe(0)
  await until(({ keyRotatedAt, online }) => keyRotatedAt !== first && online)
  await edge.waitFor(/has a new key[\s\S]*has a new key/)
  expect(inData('edge.key')).not.toBe(second)
  expect(edge.output).not.toContain('refused')
})

test('a control plane that was restored to before the new keys accepts the edge again', async () => {
  const { statements } = JSON.parse(inData('edge.key.statements')) as {
    statements: { oldPublicKey: string }[]
  }
  const publicKey = statements[0]?.oldPublicKey ?? ''
  const db = createDb(readFileSync(path.join(required('BOOTFARM_DATA'), 'postgres.url'), 'utf8').trim())
  try {
    await db.edge.updateMany({ where: { id: edgeId }, data: { publicKey, keyRotatedAt: null } })
  } finally {
    await db.$disconnect()
  }
  await until(({ keyRotatedAt, online }) => keyRotatedAt !== null && online)
})

test('the edge pins a new signing key of the organization, and keeps it across a restart', async () => {
  const pinned = () => JSON.parse(inData('identity.json')) as { signingKey: string }
  const { publicKey } = await api.mutate<{ publicKey: string }>('edge.rotateSigningKey', {})
  expect(pinned().signingKey).not.toBe(publicKey)
  await edge.waitFor(/signs with a new key/)
  expect(pinned().signingKey).toBe(publicKey)
  await until(applied)
  expect(await edge.stop()).toBe(0)
  edge = await start()
  await until((found) => found.online && applied(found))
  expect(edge.output).not.toContain('refused')
})
