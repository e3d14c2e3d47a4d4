import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { edgeAddress } from '../lib/edge/loopback-edge.ts'
import { scratchDirectory, simProgram } from '../lib/lab/programs.ts'
import { RunningProcess } from '../lib/lab/running-process.ts'

interface Device {
  id: string
  mac: string
  now: { state: string }
  lastBoot: { id: string; outcome: string | null } | null
  powerOrder: { id: string; state: string } | null
}

interface Boot {
  guest: { steps: { name: string }[]; writeCacheAt: string | null } | null
  takenPowerOrder: { id: string; order: string } | null
}

const scratch = scratchDirectory()
const data = required('BOOTFARM_DATA')
const startArguments = JSON.parse(required('BOOTFARM_START_ARGS')) as string[]
const [dhcpPort = '', , tftpPort = ''] = startArguments[startArguments.indexOf('--edge-ports') + 1]?.split(',') ?? []
/** The demo's own devices, which restart all the time, are paused meanwhile. */
const demoDevices = Number(readFileSync(path.join(data, 'run/devices.pid'), 'utf8').split(' ')[0])

let simulated: RunningProcess | undefined

afterAll(async () => {
  await simulated?.stop()
  process.kill(demoDevices, 'SIGCONT')
  scratch.remove()
})

async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('an order of the dashboard reaches a running device, which takes it once and reports it', async () => {
  const api = await ApiClient.signIn(
    required('BOOTFARM_WEB_URL'),
    required('BOOTFARM_DEMO_EMAIL'),
    required('BOOTFARM_DEMO_PASSWORD'),
  )
  const { items } = await api.query<{ items: Device[] }>('device.list', { search: '02:bf:00:00:00:01' })
  const deviceId = items[0]?.id ?? ''
  const readyAfter = (bootId: string | undefined) =>
    eventually(async () => {
      const device = await api.query<Device>('device.get', { deviceId })
      const { lastBoot, now } = device
      const isNew = lastBoot?.id !== bootId && lastBoot?.outcome === 'ready'
      return isNew && now.state === 'running' ? device : undefined
    })
  process.kill(demoDevices, 'SIGSTOP')
  const before = await api.query<Device>('device.get', { deviceId })
  const trace = path.join(scratch.path, 'trace.csv')
  writeFileSync(trace, 'time_ms,offset,length\n0,0,4096\n')
  simulated = new RunningProcess(simProgram, [
    'boot',
    '--json',
    '--server',
    edgeAddress,
    '--dhcp-port',
    dhcpPort,
    '--tftp-port',
    tftpPort,
    '--trace',
    trace,
    '--breather-ms',
    '1',
    '--waves',
    '--wave-size',
    '1',
    '--wave-interval-s',
    '3600',
  ])
  const running = await readyAfter(before.lastBoot?.id)
  const { powerOrderId } = await api.mutate<{ powerOrderId: string }>('device.orderPower', {
    deviceId,
    order: 'restart',
  })
  const again = await readyAfter(running.lastBoot?.id)
  expect(again.powerOrder).toMatchObject({ id: powerOrderId, state: 'taken' })
  const ordered = await api.query<Boot>('boot.get', { bootId: running.lastBoot?.id })
  expect(ordered.takenPowerOrder).toMatchObject({ id: powerOrderId, order: 'restart' })
  expect(ordered.guest?.steps.map(({ name }) => name)).toEqual(['kernel', 'network', 'mount', 'system'])
  expect(ordered.guest?.writeCacheAt).not.toBeNull()
  await simulated.waitFor(/(\{"mac":[^\n]*\n){2}/)
  expect(simulated.jsonLines()).toHaveLength(2)
})
