import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { addVdisk } from '../../lib/control-plane/another-vdisk.ts'
import { ControlPlane } from '../../lib/control-plane/control-plane.ts'
import { installedVersion, ReleaseRepository } from '../../lib/control-plane/releases.ts'
import { ControlledEdge } from '../../lib/edge/controlled-edge.ts'
import { edgeProgram } from '../../lib/lab/programs.ts'
import { type Account, Load, newAccount } from './load.ts'
import type { UpdateSoakOptions } from './options.ts'

const newerVersion = '0.2.0'
/** It serves, and nobody at the control plane answers what it asks for. */
const unhealthyVersion = '0.5.0'
/** Every tenth update is to a release that the edge leaves by itself. */
const unhealthyEvery = 10
/** So many updates, then the same load for the same time without any. */
const updatesPerPart = 5
const pool = ['--dhcp-pool', '127.77.32.1-127.77.39.254']

export interface UpdateSoakResult {
  minutes: number
  updates: number
  /** Of these: left for the former program by itself. */
  left: number
  quiet: Account
  updating: Account
  /** Boots that are ready at the control plane. */
  readyReported: number
  /** Reports that the edge declared lost. */
  reportsLost: number
}

interface EdgeDetail {
  agentVersion: string
  reportsLost: number
  release: { version: string; attempt: number; state: string } | null
}

/** Updates a real edge over and over while devices boot, read and write. */
export class UpdateSoak {
  readonly #options: UpdateSoakOptions
  readonly #ending: AbortSignal
  #plane: ControlPlane | undefined
  #edge: ControlledEdge | undefined
  #load: Load | undefined
  readonly #parts = { quiet: newAccount(), updating: newAccount() }
  #updates = 0
  #left = 0
  #beganAt = 0

  /** @param ending ends the run before its time */
  constructor(options: UpdateSoakOptions, ending: AbortSignal) {
    this.#options = options
    this.#ending = ending
  }

  async start(folder: string): Promise<void> {
    const repository = new ReleaseRepository(folder)
    const unhealthy = { [installedVersion]: unhealthyVersion, '/edge/v1/': '/edge/v0/' }
    repository.add(
      edgeProgram,
      repository.programWith({ [installedVersion]: newerVersion }),
      repository.programWith(unhealthy),
    )
    this.#plane = await ControlPlane.start(path.join(folder, 'plane'), undefined, repository.settings)
    const edge = await ControlledEdge.start(this.#plane, path.join(folder, 'site'), pool)
    this.#edge = edge
    const { vdiskId, siteId } = edge.tenant
    const vdisk = await edge.api.query<{ revision: number }>('vdisk.get', { vdiskId })
    const writeCache = { class: 'private', limitBytes: null, full: 'stop' }
    await edge.api.mutate('vdisk.updateWriteCache', { vdiskId, revision: vdisk.revision, ...writeCache })
    // The second writer: its writes end with the edge's process.
    const volatileVdisk = await addVdisk(this.#plane.databaseUrl, edge, edge.tenant.deviceIds.slice(1, 2), 'edge')
    const { revision } = await edge.api.query<{ revision: number }>('site.get', { siteId })
    await edge.api.mutate('site.update', { siteId, revision, unknownDevices: 'boot' })
    await this.#until(async () => {
      const state = await edge.stateInForce()
      const isVolatile = state?.vdisks.some(
        ({ id, writeCache }) => id === volatileVdisk && writeCache?.class === 'edge',
      )
      return (
        isVolatile === true && state?.unknownDevices === 'boot' && state.devices.some(({ home }) => home !== undefined)
      )
    })
    this.#load = new Load(edge, folder, this.#options.devices)
  }

  async run(): Promise<void> {
    const load = this.#required(this.#load)
    this.#beganAt = performance.now()
    const running = load.run()
    try {
      await Promise.race([this.#parted(load), running.then(() => Promise.reject(new Error('The devices ended.')))])
    } finally {
      load.end()
      await running
    }
    add(this.#parts.quiet, load.next())
  }

  async #parted(load: Load): Promise<void> {
    while (this.#updates < this.#options.updates && !this.#ending.aborted) {
      add(this.#parts.quiet, load.next())
      const begin = performance.now()
      for (let index = 0; index < updatesPerPart && this.#updates < this.#options.updates; index += 1)
        await this.#update()
      const lastedMs = performance.now() - begin
      // Boots that an update met belong to it.
      const { ready } = load.account
      await this.#until(async () => load.account.ready > ready || load.account.errors.length > 0)
      add(this.#parts.updating, load.next())
      const end = performance.now() + lastedMs
      await this.#until(async () => performance.now() >= end)
    }
  }

  async #update(): Promise<void> {
    const isLeft = this.#updates % unhealthyEvery === unhealthyEvery - 1
    const { agentVersion } = await this.#detail()
    const version = isLeft ? unhealthyVersion : agentVersion === newerVersion ? installedVersion : newerVersion
    const edge = this.#required(this.#edge)
    const { attempt } = await edge.api.mutate<{ attempt: number }>('edge.orderRelease', {
      edgeId: edge.edgeId,
      version,
    })
    await this.#until(async () => {
      const { release, agentVersion: runs } = await this.#detail()
      if (release?.version !== version || release.attempt !== attempt) return false
      if (!isLeft && release.state === 'failed') throw new Error(`${version} was left:\n${edge.process.output}`)
      return isLeft ? release.state === 'failed' && runs === agentVersion : release.state === 'healthy'
    })
    this.#updates += 1
    if (isLeft) this.#left += 1
  }

  #detail(): Promise<EdgeDetail> {
    return this.#required(this.#edge).query<EdgeDetail>()
  }

  progress(): string {
    const account = this.#load?.account ?? newAccount()
    const minutes = (performance.now() - this.#beganAt) / 60_000
    const { quiet, updating } = this.#parts
    const errors = quiet.errors.length + updating.errors.length + account.errors.length
    return `${minutes.toFixed(1)} min | ${this.#updates} of ${this.#options.updates} updates, ${this.#left} left by themselves | ${errors} errors | longest stall ${quiet.stallMs.toFixed(0)} ms quiet, ${updating.stallMs.toFixed(0)} ms updating`
  }

  /** Waits until everything is reported. */
  async check(): Promise<UpdateSoakResult> {
    const edge = this.#required(this.#edge)
    await this.#until(async () => edge.hasReported())
    const db = createDb(this.#required(this.#plane).databaseUrl)
    try {
      const { organizationId } = edge.tenant
      return {
        minutes: (performance.now() - this.#beganAt) / 60_000,
        updates: this.#updates,
        left: this.#left,
        ...this.#parts,
        readyReported: await db.boot.count({ where: { organizationId, outcome: 'ready' } }),
        reportsLost: (await this.#detail()).reportsLost,
      }
    } finally {
      await db.$disconnect()
    }
  }

  async stop(): Promise<void> {
    await this.#edge?.stop()
    await this.#plane?.stop()
  }

  /** Throws where the edge has ended meanwhile. */
  async #until(isSo: () => Promise<boolean>): Promise<void> {
    while (!this.#ending.aborted && !(await isSo())) {
      const { process } = this.#required(this.#edge)
      if (!process.isRunning) throw new Error(process.output)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  #required<T>(started: T | undefined): T {
    if (started === undefined) throw new Error('The soak has not started.')
    return started
  }
}

function add(sum: Account, { ready, reads, writes, stallMs, errors }: Account): void {
  sum.ready += ready
  sum.reads += reads
  sum.writes += writes
  sum.stallMs = Math.max(sum.stallMs, stallMs)
  sum.errors.push(...errors)
}
