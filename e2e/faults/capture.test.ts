import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ApiClient, required } from '../lib/control-plane/api-client.ts'
import { RawDevice } from '../lib/device/raw-device.ts'
import { edgeAddress } from '../lib/edge/loopback-edge.ts'

interface Boot {
  id: string
  mac: string
  outcome: string | null
}

interface Capture {
  packetCount: number
  packets: { what: string }[]
}

const mac = '02:bf:00:00:00:01'
const data = required('BOOTFARM_DATA')
const startArguments = JSON.parse(required('BOOTFARM_START_ARGS')) as string[]
const [dhcpPort = '', , , httpPort = ''] = startArguments[startArguments.indexOf('--edge-ports') + 1]?.split(',') ?? []
/** The demo's own devices are paused meanwhile. */
const demoDevices = Number(readFileSync(path.join(data, 'run/devices.pid'), 'utf8').split(' ')[0])
const device = new RawDevice(edgeAddress, mac)

afterAll(() => {
  device.close()
  process.kill(demoDevices, 'SIGCONT')
})

/** Asks from the device's own address, which alone can end its boot: the demo's device has a lease. */
function statusOf(method: string, url: string, body?: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, localAddress: device.offeredAddress }, (answer) => {
      answer.resume()
      resolve(answer.statusCode)
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

test('the packets of a failed boot reach its page without a request', async () => {
  const api = await ApiClient.signIn(
    required('BOOTFARM_WEB_URL'),
    required('BOOTFARM_DEMO_EMAIL'),
    required('BOOTFARM_DEMO_PASSWORD'),
  )
  process.kill(demoDevices, 'SIGSTOP')
  const file = await device.discover(Number(dhcpPort))
  const edge = `http://${edgeAddress}:${httpPort}`
  const url = `${edge}/${file.replace(/[^/]+$/, 'failed')}`
  expect(await statusOf('GET', `${edge}/m/${mac}/boot.ipxe`)).toBe(200)
  expect(await statusOf('POST', url, 'no_root as a test')).toBe(204)
  for (;;) {
    const { items } = await api.query<{ items: Boot[] }>('boot.list', { limit: 20 })
    const boot = items.find((item) => item.mac === mac)
    const capture =
      boot?.outcome === 'failed' ? await api.query<Capture | null>('boot.capture', { bootId: boot.id }) : null
    if (!capture) {
      await new Promise((resolve) => setTimeout(resolve, 200))
      continue
    }
    expect(capture.packetCount).toBeGreaterThanOrEqual(2)
    // The demo uses its own ports, so other programs do not recognise its DHCP.
    const words = capture.packets.map(({ what }) => what)
    expect(words).toContainEqual(expect.stringMatching(new RegExp(`port \\d+ to ${dhcpPort}$`)))
    expect(words).toContainEqual(expect.stringMatching(new RegExp(`port ${dhcpPort} to \\d+$`)))
    return
  }
})
