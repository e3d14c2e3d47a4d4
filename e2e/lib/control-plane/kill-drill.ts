import { createDb } from '@bootfarm/db'
import type { ControlledEdge } from '../edge/controlled-edge.ts'
import { simProgram } from '../lab/programs.ts'
import { RunningProcess } from '../lab/running-process.ts'
import type { ControlPlane } from './control-plane.ts'

export const victims = ['api', 'postgres', 'edge'] as const
export type Victim = (typeof victims)[number]

export interface DrillResult {
  /** Boots that an edge had logged as over. */
  boots: number
  ready: number
  /** Reports that are missing at the control plane, or differ from the edge's. */
  lost: string[]
  /** Where the control plane's counts differ from its boots. */
  miscounted: string[]
  declaredLost: number
}

/**
 * Edges whose devices boot in waves while one process after the other is killed, and the checks that must hold
 * afterwards.
 */
export class KillDrill {
  readonly #plane: ControlPlane
  readonly #edges: ControlledEdge[]
  readonly #db: ReturnType<typeof createDb>
  readonly #devices: RunningProcess[]

  constructor(plane: ControlPlane, edges: ControlledEdge[], waveSeconds = 1) {
    this.#plane = plane
    this.#edges = edges
    this.#db = createDb(plane.databaseUrl)
    this.#devices = edges.map((edge) => {
      const count = String(edge.tenant.macs.length)
      const waves = ['--waves', '--wave-size', count, '--wave-interval-s', String(waveSeconds)]
      return new RunningProcess(simProgram, [...edge.deviceArguments(), ...waves])
    })
  }

  /** Kills with SIGKILL; resolves when the victim runs again. */
  async strike(victim: Victim, edgeIndex = 0): Promise<void> {
    if (victim === 'api') await this.#plane.killApi()
    else if (victim === 'postgres') await this.#plane.killDatabase()
    else await this.#edgeAt(edgeIndex).restart()
  }

  /**
   * Kills with SIGKILL; resolves when the victim runs again and reports are accepted, whether or not the edge hears of
   * it.
   */
  async kill(victim: Victim, edgeIndex = 0): Promise<void> {
    await this.strike(victim, edgeIndex)
    const { uplink } = this.#edgeAt(edgeIndex)
    const answered = () => uplink.acknowledgementsLost + uplink.acknowledgementsPassed
    const before = answered()
    await this.#eventually(async () => answered() > before)
  }

  #edgeAt(index: number): ControlledEdge {
    const edge = this.#edges[index]
    if (!edge) throw new Error(`there is no edge ${index}`)
    return edge
  }

  /** Stops the devices and the loss of acknowledgements, and waits until everything is reported. */
  async settle(): Promise<void> {
    for (const { uplink } of this.#edges) uplink.lostShare = 0
    for (const devices of this.#devices) await devices.stop()
    for (const edge of this.#edges) await this.#eventually(async () => edge.hasReported())
  }

  async check(): Promise<DrillResult> {
    const result: DrillResult = { boots: 0, ready: 0, lost: [], miscounted: [], declaredLost: 0 }
    for (const edge of this.#edges) await this.#checkEdge(edge, result)
    return result
  }

  async #checkEdge(edge: ControlledEdge, result: DrillResult): Promise<void> {
    const { edgeId, process } = edge
    const { organizationId } = edge.tenant
    const rows = await this.#db.boot.findMany({ where: { edgeId }, select: { id: true, outcome: true } })
    const outcomeOf = new Map(rows.map(({ id, outcome }) => [id, outcome]))
    for (const [id, boot] of edge.printedBoots()) {
      result.boots += 1
      if (boot.outcome.kind === 'ready') result.ready += 1
      if (outcomeOf.get(id) !== boot.outcome.kind) result.lost.push(`${id} ${boot.outcome.kind}: ${outcomeOf.get(id)}`)
    }
    const counted = await this.#db.bootRollup.aggregate({
      where: { organizationId, grain: 'day' },
      _sum: {
        readyCount: true,
        failedCount: true,
        silentCount: true,
        supersededCount: true,
        bootingCount: true,
      },
    })
    const sums = counted._sum
    const had = (outcome: string | null) => rows.filter((row) => row.outcome === outcome).length
    for (const [name, sum, count] of [
      ['ready', sums.readyCount, had('ready')],
      ['failed', sums.failedCount, had('failed')],
      ['silent', sums.silentCount, had('silent')],
      ['superseded', sums.supersededCount, had('superseded')],
      ['booting', sums.bootingCount, had(null)],
    ] as const)
      if (sum !== count) result.miscounted.push(`${name}: ${sum} counted, ${count} are there`)
    if (new Set(rows.map(({ id }) => id)).size !== rows.length) result.miscounted.push('a boot is there twice')
    const lost = await this.#db.reportCursor.aggregate({ where: { edgeId }, _sum: { lostCount: true } })
    result.declaredLost += Number(lost._sum.lostCount ?? 0)
    if (!process.isRunning) result.lost.push(`the edge has ended:\n${process.output.slice(-2000)}`)
  }

  async stop(): Promise<void> {
    for (const devices of this.#devices) await devices.stop()
    await this.#db.$disconnect()
  }

  /** Refused connections while the database restarts are expected. */
  async #eventually(isSo: () => Promise<boolean>): Promise<void> {
    for (;;) {
      if (await isSo().catch(() => false)) return
      for (const { process } of this.#edges) if (!process.isRunning) throw new Error(process.output)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
