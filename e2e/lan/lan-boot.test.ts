import { readFileSync } from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePorts } from '../../scripts/lib/free-ports.mjs'
import { ensureSystemRoot } from '../../scripts/lib/machines/system-root.mjs'
import { relay } from '../../scripts/start/relay.mjs'
import { ApiClient } from '../lib/api-client.ts'
import { macOf, startMachine } from '../lib/machine.ts'
import { machinesMissing } from '../lib/machine-kernel.ts'
import { MachineSegment } from '../lib/machine-segment.ts'
import { scratchDirectory, startScript } from '../lib/programs.ts'
import type { RunningProcess } from '../lib/running-process.ts'

interface Boot {
  mac: string
  outcome: string | null
  simulated: boolean
  siteName: string
  deviceName: string | null
  phases: { name: string }[]
}

const relayProgram = path.resolve(import.meta.dirname, '../../scripts/start/relay-main.mjs')
const minute = 60_000
const missing = machinesMissing()
const scratch = scratchDirectory()
const data = path.join(scratch.path, 'data')
let segment: MachineSegment
let product: RunningProcess
let api: ApiClient
const running: RunningProcess[] = []
let door: Awaited<ReturnType<typeof relay>>

describe.skipIf(missing)(
  `npm start -- --lan on a server of an office's LAN${missing ? ` (${missing})` : ''}`,
  () => {
    beforeAll(async () => {
      // The server in its namespace reaches no mirror.
      const root = await ensureSystemRoot('full')
      if ('missing' in root) throw new Error(root.missing)
      segment = new MachineSegment('lan', 1)
      running.push(segment.startDhcpServer())
      const [web = 0, ...others] = await freePorts(9)
      const [apiPort, pg, ...edge] = others
      product = segment.startOnEdge(process.execPath, [
        ...[startScript, '--lan', segment.edgeIp, '--data', data, '--web-port', String(web)],
        ...['--api-port', String(apiPort), '--pg-port', String(pg), '--edge-ports', edge.join(',')],
      ])
      running.push(product)
      await product.waitFor(/Ctrl-C stops everything/)
      const socket = path.join(scratch.path, 'dashboard.socket')
      running.push(segment.startOnEdge(process.execPath, [relayProgram, socket, String(web)]))
      door = await relay({ port: web, host: '127.0.0.1' }, { path: socket })
      const signIn = JSON.parse(readFileSync(path.join(data, 'demo-sign-in.json'), 'utf8'))
      api = await eventually(() => ApiClient.signIn(`http://localhost:${web}`, signIn.email, signIn.password))
    }, 5 * minute)

    afterAll(async () => {
      door?.close()
      for (const process of running.reverse()) await process.stop()
      segment?.remove()
      scratch.remove()
    }, minute)

    test('says what to do in the firmware and in the DHCP server', () => {
      expect(product.output).toMatch(/EVERY machine .* gets Debian/s)
      expect(product.output).toMatch(/Firmware .*PXE IPv4.*Secure Boot off/)
      expect(product.output).toMatch(/DHCP server .*stays as it is/)
      expect(product.output).toMatch(/UDP 67, 4011, 69, 6910 and TCP 6980/)
    })

    test.for(['bios', 'uefi'] as const)(
      'a machine with %s that nobody registered boots Debian from it',
      {
        timeout: 3 * minute,
      },
      async (firmware) => {
        const before = await bootsOfMachine()
        const machine = startMachine({ segment, port: 0, firmware, directory: scratch.path, memoryMib: 1024 })
        running.push(machine)
        const boot = await eventually(async () => {
          const boots = await bootsOfMachine()
          return boots.length > before.length && boots[0]?.outcome ? boots[0] : undefined
        })
        expect(boot).toMatchObject({
          outcome: 'ready',
          simulated: false,
          siteName: 'LAN',
          deviceName: macOf(0).replaceAll(':', '-'),
        })
        await machine.stop()
      },
    )
  },
)

async function bootsOfMachine(): Promise<Boot[]> {
  const page = await api.query<{ items: Boot[] }>('boot.list', { limit: 100 })
  return page.items.filter(({ mac }) => mac === macOf(0))
}

/** Asks until it is so. The test's own limit ends it. */
async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask().catch(() => undefined)
    if (answer !== undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}
