import { afterAll, expect, test } from 'vitest'
import {
  edgeAddress,
  edgePorts,
  makeBootFiles,
  serveArguments,
  startLoopbackEdge,
  untilListening,
} from '../lib/edge/loopback-edge.ts'
import { scratchDirectory } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

/** The limit that docs/guides/operations.md names. */
const bootsMax = 2048

test('an edge with a full boot table refuses one more device, and accepts it when a boot is over', async () => {
  const ports = await edgePorts()
  const { dhcp: metricsPort } = await edgePorts()
  const metrics = ['--metrics', String(metricsPort)]
  const edge = await startLoopbackEdge(ports, [...serveArguments(makeBootFiles(scratch.path, 8)), ...metrics])
  await untilListening(edge, metricsPort)
  const url = `http://${edgeAddress}:${ports.http}`
  const script = (device: number) =>
    fetch(
      `${url}/m/02:bf:00:00:${(device >> 8).toString(16).padStart(2, '0')}:${(device & 255).toString(16).padStart(2, '0')}/boot.ipxe`,
    )
  let first = ''
  for (let device = 0; device < bootsMax; device++) {
    const answer = await script(device)
    expect(answer.status, `device ${device}`).toBe(200)
    const text = await answer.text()
    if (device === 0) first = text.match(/\/b\/(\w+)\//)?.[1] ?? ''
  }
  const refused = await script(bootsMax)
  expect(refused.status).toBe(503)
  expect(await refused.text()).toBe(
    'This edge has reached its limit of boots in progress: try again, or add another edge.\n',
  )
  const page = async () => (await fetch(`http://${edgeAddress}:${metricsPort}/metrics`)).text()
  await expect.poll(page, { timeout: 20_000 }).toContain('{reason="boot_table_full"} 1\n')
  // Devices with running boots continue them.
  expect((await script(5)).status).toBe(200)

  const over = await fetch(`${url}/b/${first}/failed`, { method: 'POST', body: 'test it is switched off' })
  expect(over.status).toBeLessThan(300)
  expect((await script(bootsMax)).status).toBe(200)
  expect(await edge.stop()).toBe(0)
})
