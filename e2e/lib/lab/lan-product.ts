import { readFileSync } from 'node:fs'
import path from 'node:path'
import { freePorts } from '../../../scripts/lib/free-ports.mjs'
import { relay } from '../../../scripts/start/relay.mjs'
import { ApiClient } from '../control-plane/api-client.ts'
import { relayProgram, scratchDirectory, startScript } from './programs.ts'
import type { RunningProcess } from './running-process.ts'
import { Segment } from './segment.ts'

export interface LanBoot {
  id: string
  mac: string
  outcome: string | null
  simulated: boolean
  siteName: string
  deviceName: string | null
  phases: { name: string }[]
}

/** `npm start -- --lan` on a server in an office's LAN, beside the office's own DHCP server. */
export class LanProduct {
  readonly segment: Segment
  readonly scratch = scratchDirectory()
  readonly #running: RunningProcess[] = []
  #door: Awaited<ReturnType<typeof relay>> | undefined
  #product: RunningProcess | undefined
  #api: ApiClient | undefined

  constructor(name: string) {
    this.segment = new Segment(name, { machines: 1 })
    this.#running.push(this.segment.startDhcpServer())
  }

  /** The output of `npm start`. */
  get output(): string {
    return this.#product?.output ?? ''
  }

  /** Stops this process together with the product, before it. */
  add(process: RunningProcess): RunningProcess {
    this.#running.push(process)
    return process
  }

  /** Resolves when somebody can sign in to the dashboard. `args` follow `--lan`. */
  async start(args: string[] = []): Promise<void> {
    const data = path.join(this.scratch.path, 'data')
    const [web = 0, ...others] = await freePorts(10)
    const [apiPort, pg, ...edge] = others
    this.#product = this.add(
      this.segment.startOnEdge(process.execPath, [
        startScript,
        '--lan',
        this.segment.edgeIp,
        '--data',
        data,
        '--web-port',
        String(web),
        '--api-port',
        String(apiPort),
        '--pg-port',
        String(pg),
        '--edge-ports',
        edge.join(','),
        ...args,
      ]),
    )
    await this.#product.waitFor(/Ctrl-C stops everything/)
    const socket = path.join(this.scratch.path, 'dashboard.socket')
    this.add(this.segment.startOnEdge(process.execPath, [relayProgram, socket, String(web)]))
    this.#door = await relay({ port: web, host: '127.0.0.1' }, { path: socket })
    const signIn = JSON.parse(readFileSync(path.join(data, 'demo-sign-in.json'), 'utf8'))
    this.#api = await eventually(() => ApiClient.signIn(`http://localhost:${web}`, signIn.email, signIn.password))
  }

  /** Newest first. */
  async bootsOf(mac: string): Promise<LanBoot[]> {
    const page = await this.#api?.query<{ items: LanBoot[] }>('boot.list', { limit: 100 })
    return page?.items.filter((boot) => boot.mac === mac) ?? []
  }

  /** Resolves with the first finished boot of this MAC address that is not among the known ones. */
  finishedBoot(mac: string, known: LanBoot[] = []): Promise<LanBoot> {
    return eventually(async () => {
      const [newest] = await this.bootsOf(mac)
      return newest?.outcome && !known.some(({ id }) => id === newest.id) ? newest : undefined
    })
  }

  async remove(): Promise<void> {
    this.#door?.close()
    for (const process of this.#running.reverse()) await process.stop()
    this.segment.remove()
    this.scratch.remove()
  }
}

/** Polls until there is an answer. The test's own limit ends it. */
async function eventually<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const answer = await ask().catch(() => undefined)
    if (answer !== undefined) return answer
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
}
