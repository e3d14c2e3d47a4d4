import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { edgeAddress } from '../lib/edge/loopback-edge.ts'
import { scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Discovered {
  id: string
  siteId: string
  mac: string
  asked: string
  clientArch: number
  vendorClass: string
  requests: number
}

/** Registered nowhere. */
const mac = '02:bf:00:00:02:01'
const scratch = scratchDirectory()
const startArguments = JSON.parse(required('BOOTFARM_START_ARGS')) as string[]
const [dhcpPort = '', , tftpPort = ''] = startArguments[startArguments.indexOf('--edge-ports') + 1]?.split(',') ?? []

let machine: RunningProcess | undefined

afterAll(async () => {
  await machine?.stop()
  scratch.remove()
})

async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('an unregistered machine is discovered, adopted while it keeps asking, and boots', async () => {
  const api = await ApiClient.signIn(
    required('BOOTFARM_WEB_URL'),
    required('BOOTFARM_DEMO_EMAIL'),
    required('BOOTFARM_DEMO_PASSWORD'),
  )
  const waiting = async () => (await api.query<{ items: Discovered[] }>('discovered.list', { search: mac })).items[0]
  const trace = path.join(scratch.path, 'trace.csv')
  writeFileSync(trace, 'time_ms,offset,length\n0,0,4096\n')
  machine = new RunningProcess(simProgram, [
    'boot',
    '--json',
    '--server',
    edgeAddress,
    '--dhcp-port',
    dhcpPort,
    '--tftp-port',
    tftpPort,
    '--first-mac',
    mac,
    '--trace',
    trace,
    '--breather-ms',
    '1',
  ])
  const discovered = await eventually(waiting)
  expect(discovered).toMatchObject({
    mac,
    asked: 'dhcp',
    clientArch: 0,
    vendorClass: 'PXEClient:Arch:00000:UNDI:002001',
  })
  expect(discovered.requests).toBeGreaterThan(0)
  const { items } = await api.query<{ items: { id: string }[] }>('collection.list', {
    siteId: discovered.siteId,
  })
  const { adopted } = await api.mutate<{ adopted: { deviceId: string }[] }>('discovered.adopt', {
    siteId: discovered.siteId,
    discoveredIds: [discovered.id],
    namePattern: 'found-{nn}',
    collectionId: items[0]?.id,
  })
  expect(adopted).toMatchObject([{ name: 'found-01', mac }])
  expect(await waiting()).toBeUndefined()
  expect(await machine.ended, machine.output).toBe(0)
  expect(machine.jsonLines()).toMatchObject([{ mac, outcome: 'ready' }])
  const device = await eventually(async () => {
    const found = await api.query<{ lastBoot: { outcome: string | null } | null }>('device.get', {
      deviceId: adopted[0]?.deviceId,
    })
    return found.lastBoot?.outcome ? found : undefined
  })
  expect(device.lastBoot?.outcome).toBe('ready')
})
