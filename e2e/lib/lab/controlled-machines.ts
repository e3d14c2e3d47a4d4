import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import type net from 'node:net'
import path from 'node:path'
import { createPerson, createTenant, makeJoinToken, type TestTenant } from '@bootfarm/api/testing/tenant'
import { createDb } from '@bootfarm/db'
import type { DesiredState } from '@bootfarm/proto/uplink'
import { relay } from '../../../scripts/start/relay.mjs'
import { ApiClient } from '../control-plane/api-client.ts'
import { ControlPlane } from '../control-plane/control-plane.ts'
import { macOf } from '../device/machine.ts'
import { readDesiredState } from '../edge/edge-data.ts'
import { MachineSite } from './machine-site.ts'
import { edgeProgram, relayProgram, scratchDirectory } from './programs.ts'
import type { RunningProcess } from './running-process.ts'

/** A port in the edge's own namespace. */
const controlPlanePort = 4400
const answerLimitMs = 120_000

type DeviceType = 'production' | 'test' | 'maintenance'

export interface ControlledMachinesOptions {
  /** Further settings of the API. */
  settings?: Record<string, string>
  /** Further options of the edge's `serve`. */
  edgeOptions?: readonly string[]
}

/** Machines whose edge has a store and its own control plane: PostgreSQL and the API, without a dashboard. */
export class ControlledMachines {
  readonly machines: MachineSite
  readonly plane: ControlPlane
  readonly tenant: TestTenant
  readonly api: ApiClient
  readonly edgeId: string
  edge: RunningProcess
  readonly #edgeOptions: readonly string[]
  readonly #remove: () => Promise<void>

  private constructor(made: {
    machines: MachineSite
    plane: ControlPlane
    tenant: TestTenant
    api: ApiClient
    edge: RunningProcess
    edgeOptions: readonly string[]
    remove: () => Promise<void>
  }) {
    this.machines = made.machines
    this.plane = made.plane
    this.tenant = made.tenant
    this.api = made.api
    this.edge = made.edge
    this.#edgeOptions = made.edgeOptions
    this.#remove = made.remove
    this.edgeId = JSON.parse(readFileSync(path.join(made.machines.edgeData, 'identity.json'), 'utf8')).edgeId
  }

  /** `script`: see `SiteImage`. The machine of port i is the tenant's device i, with type `deviceTypes[i]`. */
  static async start(
    name: string,
    script: string,
    deviceTypes: DeviceType[],
    { settings = {}, edgeOptions = [] }: ControlledMachinesOptions = {},
  ): Promise<ControlledMachines> {
    const scratch = scratchDirectory()
    const machines = new MachineSite(name, { script, blobSize: 1 << 20 }, { machines: deviceTypes.length })
    const plane = await ControlPlane.start(path.join(scratch.path, 'plane'), undefined, settings).catch(
      async (error: unknown) => {
        await machines.remove()
        scratch.remove()
        throw error
      },
    )
    const socket = path.join(scratch.path, 'control-plane')
    const door = await relay({ path: socket }, { port: Number(new URL(plane.apiUrl).port), host: '127.0.0.1' })
    const relaying = machines.segment.startOnEdge(process.execPath, [relayProgram, String(controlPlanePort), socket])
    const remove = async () => {
      await machines.remove()
      await relaying.stop()
      await closed(door)
      await plane.stop()
      scratch.remove()
    }
    try {
      while (!machines.segment.edgeListens(controlPlanePort)) {
        if (!relaying.isRunning) throw new Error(relaying.output)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return await ControlledMachines.#in({ machines, plane, edgeOptions, remove }, deviceTypes)
    } catch (error) {
      await remove()
      throw error
    }
  }

  static async #in(
    {
      machines,
      plane,
      edgeOptions,
      remove,
    }: { machines: MachineSite; plane: ControlPlane; edgeOptions: readonly string[]; remove: () => Promise<void> },
    deviceTypes: DeviceType[],
  ): Promise<ControlledMachines> {
    const { tenant, person, joinToken } = await makeRows(plane, deviceTypes)
    const run = async (args: string[]) => {
      const command = machines.segment.startOnEdge(edgeProgram, args)
      if ((await command.ended) !== 0) throw new Error(command.output)
    }
    const url = `http://127.0.0.1:${controlPlanePort}`
    await run(['enrol', '--url', url, '--token', joinToken, '--data', machines.edgeData])
    const store = path.join(machines.edgeData, 'store')
    await run(['vdisk', 'init', '--store', store])
    const files = { 'disk.raw': machines.disk.image, vmlinuz: machines.kernel, 'initrd.img': machines.initrd }
    mkdirSync(path.join(store, 'images'))
    for (const [name, file] of Object.entries(files)) copyFileSync(file, path.join(store, 'images', name))
    const api = await ApiClient.signIn(plane.webUrl, person.email, person.password)
    const edge = await machines.startOwnEdge(edgeOptions)
    return new ControlledMachines({ machines, plane, tenant, api, edge, edgeOptions, remove })
  }

  /** Kills the edge with SIGKILL and starts it again. */
  async killEdge(): Promise<void> {
    this.edge.kill('SIGKILL')
    await this.edge.ended
    this.edge = await this.machines.startOwnEdge(this.#edgeOptions)
  }

  /** Resolves when the desired state that the edge received fits. */
  untilState(isSo: (state: DesiredState) => boolean): Promise<true> {
    return this.eventually('state at the edge', async () => {
      return isSo(readDesiredState(this.machines.edgeData)) || undefined
    })
  }

  /** Resolves when the edge lets this machine boot that version. */
  async untilBoots(port: number, versionId: string, writes = false): Promise<void> {
    await this.untilState(({ devices }) =>
      devices.some(
        (device) => device.mac === macOf(port) && device.versionId === versionId && (device.writes ?? false) === writes,
      ),
    )
  }

  /** Polls until there is an answer; after the limit it fails with the last error and the edge's output. */
  async eventually<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
    const deadline = performance.now() + answerLimitMs
    let said: unknown = 'nothing'
    while (performance.now() < deadline && this.edge.isRunning) {
      try {
        const answer = await ask()
        if (answer !== undefined) return answer
      } catch (error) {
        said = error
      }
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    throw new Error(`no ${what}; the last answer was ${said}\n${this.edge.output}`)
  }

  remove(): Promise<void> {
    return this.#remove()
  }
}

async function makeRows(plane: ControlPlane, deviceTypes: DeviceType[]) {
  const db = createDb(plane.databaseUrl)
  try {
    const clock = { now: new Date(), advance: () => {}, read: () => new Date() }
    const tenant = await createTenant({ db, clock }, 'machines')
    const { organizationId } = tenant
    for (const [index, deviceType] of deviceTypes.entries())
      await db.device.update({
        where: { organizationId_id: { organizationId, id: tenant.deviceIds[index] ?? '' } },
        data: { deviceType, mac: macOf(index) },
      })
    const person = await createPerson({ db }, organizationId, 'admin')
    return { tenant, person, joinToken: await makeJoinToken({ db, clock }, tenant) }
  } finally {
    await db.$disconnect()
  }
}

function closed(server: net.Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()))
}
