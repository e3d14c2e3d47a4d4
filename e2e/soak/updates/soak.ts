import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { installedVersion, ReleaseRepository } from '../../lib/control-plane/releases.ts'
import { edgeProgram } from '../../lib/lab/programs.ts'
import { type Account, longestStallMs, newAccount } from './account.ts'
import { Load } from './load.ts'
import { type UpdateSoakOptions, writersPerClass } from './options.ts'
import { startSite, type UpdateSite } from './site.ts'

const newerVersion = '0.2.0'
/** It serves, and nobody at the control plane answers what it asks for. */
const unhealthyVersion = '0.5.0'
/** Every tenth update is to a release that the edge leaves by itself. */
const unhealthyEvery = 10
const pollMs = 200

export interface UpdateSoakResult {
  minutes: number
  updates: number
  /** Of these: left for the former program by itself. */
  left: number
  /** Seconds from the order of each update until it was reported, of those that stayed and of those that were left. */
  seconds: { healthy: number[]; left: number[] }
  quiet: Account
  updating: Account
  /** Boots at the control plane, by how they ended. */
  outcomes: Record<string, number>
  /** Reports that the edge declared lost; undefined where nobody could be asked. */
  reportsLost: number | undefined
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
  readonly #say: (text: string) => void
  #updateSite: UpdateSite | undefined
  #load: Load | undefined
  /** Undefined until the first update. */
  #quiet: Account | undefined
  readonly #seconds = { healthy: [] as number[], left: [] as number[] }
  #beganAt = performance.now()

  /** @param ending ends the run before its time */
  constructor(options: UpdateSoakOptions, ending: AbortSignal, say: (text: string) => void) {
    this.#options = options
    this.#ending = ending
    this.#say = say
  }

  async start(folder: string): Promise<void> {
    const repository = new ReleaseRepository(folder)
    const unhealthy = { [installedVersion]: unhealthyVersion, '/edge/v1/': '/edge/v0/' }
    repository.add(
      edgeProgram,
      repository.programWith({ [installedVersion]: newerVersion }),
      repository.programWith(unhealthy),
    )
    const { devices, machines, probation } = this.#options
    const writers = writersPerClass(this.#options)
    const sizes = { writersPerClass: writers, machines, probationSeconds: probation }
    this.#updateSite = await startSite(repository.settings, sizes)
    this.#load = new Load(this.#updateSite, folder, { readers: devices - 2 * writers, machines })
  }

  async run(): Promise<void> {
    const load = required(this.#load)
    await load.start(this.#say)
    const { errors } = await load.next()
    load.account.errors.push(...errors)
    this.#beganAt = performance.now()
    const quietUntil = this.#beganAt + this.#options.quietMinutes * 60_000
    await this.#until(async () => performance.now() >= quietUntil)
    this.#quiet = await load.next()
    while (this.#count < this.#options.updates && !this.#ending.aborted) await this.#update()
    // Boots that an update met belong to it.
    await load.end()
  }

  get #count(): number {
    return this.#seconds.healthy.length + this.#seconds.left.length
  }

  async #update(): Promise<void> {
    const isLeft = this.#count % unhealthyEvery === unhealthyEvery - 1
    const { agentVersion } = await this.#detail()
    const version = isLeft ? unhealthyVersion : agentVersion === newerVersion ? installedVersion : newerVersion
    const { site } = required(this.#updateSite)
    const began = performance.now()
    const { attempt } = await site.api.mutate<{ attempt: number }>('edge.orderRelease', {
      edgeId: site.edgeId,
      version,
    })
    await this.#until(async () => {
      const { release, agentVersion: runs } = await this.#detail()
      if (release?.version !== version || release.attempt !== attempt) return false
      if (!isLeft && release.state === 'failed') throw new Error(`${version} was left:\n${this.#lastLines()}`)
      return isLeft ? release.state === 'failed' && runs === agentVersion : release.state === 'healthy'
    })
    this.#seconds[isLeft ? 'left' : 'healthy'].push((performance.now() - began) / 1000)
  }

  #detail(): Promise<EdgeDetail> {
    const { site } = required(this.#updateSite)
    return site.api.query<EdgeDetail>('edge.get', { edgeId: site.edgeId })
  }

  #lastLines(): string {
    const lines = required(this.#updateSite).site.edge.output.split('\n')
    return lines
      .filter((line) => !line.startsWith('{'))
      .slice(-30)
      .join('\n')
  }

  async progress(): Promise<string> {
    await this.#load?.collect()
    const { quiet, updating } = this.#parts
    const minutes = (performance.now() - this.#beganAt) / 60_000
    const errors = [...quiet.errors, ...updating.errors]
    const stall = (of: Account) =>
      `${longestStallMs(of, 'reader').toFixed(0)} and ${longestStallMs(of, 'writer').toFixed(0)} ms`
    return [
      `${minutes.toFixed(1)} min`,
      `${this.#count} of ${this.#options.updates} updates, ${this.#seconds.left.length} left by themselves`,
      errors.length === 0 ? '0 errors' : `${errors.length} errors, the last: ${errors.at(-1)}`,
      `longest stalls of those who read and write: ${stall(quiet)} before, ${stall(updating)} with updates`,
    ].join(' | ')
  }

  /** Until the first update everything belongs to the part without. */
  get #parts(): { quiet: Account; updating: Account } {
    const account = this.#load?.account ?? newAccount()
    return this.#quiet === undefined
      ? { quiet: account, updating: newAccount() }
      : { quiet: this.#quiet, updating: account }
  }

  /** Waits until everything is reported, unless a signal has ended the run. */
  async check(): Promise<UpdateSoakResult> {
    await this.#until(async () => hasReported(required(this.#updateSite).site.machines.edgeData))
    const minutes = (performance.now() - this.#beganAt) / 60_000
    // Programs that a signal has ended cannot answer.
    const reported = await this.#reported().catch((error: unknown) => {
      if (!this.#ending.aborted) throw error
      return { outcomes: {}, reportsLost: undefined }
    })
    return {
      minutes,
      updates: this.#count,
      left: this.#seconds.left.length,
      seconds: this.#seconds,
      ...this.#parts,
      ...reported,
    }
  }

  async #reported(): Promise<Pick<UpdateSoakResult, 'outcomes' | 'reportsLost'>> {
    const { site } = required(this.#updateSite)
    const db = createDb(site.plane.databaseUrl)
    try {
      const { organizationId } = site.tenant
      const boots = await db.boot.groupBy({ by: ['outcome'], where: { organizationId }, _count: true })
      return {
        outcomes: Object.fromEntries(boots.map(({ outcome, _count }) => [outcome ?? 'open', _count])),
        reportsLost: (await this.#detail()).reportsLost,
      }
    } finally {
      await db.$disconnect()
    }
  }

  async stop(): Promise<void> {
    await this.#updateSite?.site.remove()
  }

  /** Throws where the edge has ended meanwhile. */
  async #until(isSo: () => Promise<boolean>): Promise<void> {
    while (!this.#ending.aborted && !(await isSo())) {
      const { edge } = required(this.#updateSite).site
      if (!edge.isRunning) throw new Error(this.#lastLines())
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
  }
}

/** Whether everything in the log of an edge is acknowledged, and every loss declared. */
function hasReported(data: string): boolean {
  const folder = path.join(data, 'reports')
  const gaps = path.join(folder, 'gaps')
  return (
    readdirSync(folder).every((name) => name === 'gaps') &&
    (!existsSync(gaps) || readFileSync(gaps).every((byte) => byte === 0))
  )
}

function required<T>(started: T | undefined): T {
  if (started === undefined) throw new Error('The soak has not started.')
  return started
}
