import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createDb } from '@bootfarm/db'
import { ControlPlane } from '../lib/control-plane/control-plane.ts'
import { type DrillResult, KillDrill } from '../lib/control-plane/kill-drill.ts'
import { ControlledEdge } from '../lib/edge/controlled-edge.ts'
import { lostChanges, stateDiffers } from './afterwards.ts'
import { Editor } from './editor.ts'
import { type MemorySeries, type MemoryUse, memoryUse, residentBytes } from './memory.ts'
import type { SoakOptions } from './options.ts'
import { cutMs, planSoak, randomNumbers, type SoakPlan } from './plan.ts'

/** The last edge is never killed, nor is the second API process: a leak would show in their memory. */
const edgeCount = 3
const mortalEdgeCount = 2
const waveSeconds = 2
const sampleIntervalMs = 5_000
/** For everything that waits at the edges to be reported, and for edges to get the last state. */
const settleLimitMs = 600_000
const mebibyte = 1024 * 1024
/** Limits resident memory at any time. */
export const memoryLimits = {
  'API, killed': 768 * mebibyte,
  'API, never killed': 768 * mebibyte,
  'edges, killed': 256 * mebibyte,
  'edge, never killed': 256 * mebibyte,
}
type Who = keyof typeof memoryLimits

export interface SoakResult {
  minutes: number
  struck: Record<string, number>
  cutMinutes: number[]
  drill: DrillResult
  acknowledgements: { lost: number; passed: number }
  changes: { acknowledged: number; refused: number; unknown: number }
  lostChanges: string[]
  /** Sentences of the API where it should not have refused. */
  refusals: string[]
  unsettled: string[]
  memory: MemoryUse[]
}

/** Kills real programs and cuts them off while devices boot and people change things. */
export class Soak {
  readonly #plan: SoakPlan
  readonly #options: SoakOptions
  readonly #ending: AbortSignal
  readonly #random: () => number
  readonly #memory: MemorySeries = new Map(Object.keys(memoryLimits).map((who) => [who, []]))
  readonly #struck: Record<string, number> = { api: 0, postgres: 0, edge: 0 }
  #plane: ControlPlane | undefined
  #edges: ControlledEdge[] = []
  #editors: Editor[] = []
  #drill: KillDrill | undefined
  #beganAt = 0

  /** @param ending ends the run before its time */
  constructor(options: SoakOptions, ending: AbortSignal) {
    this.#options = options
    this.#ending = ending
    this.#plan = planSoak({ ...options, edgeCount, mortalEdgeCount })
    this.#random = randomNumbers(options.seed + 1)
  }

  get order(): string {
    return this.#plan.strikes
      .map(({ victim, edgeIndex }) => (victim === 'edge' ? `edge${edgeIndex + 1}` : victim))
      .join(' ')
  }

  async start(folder: string): Promise<void> {
    const plane = await ControlPlane.start(path.join(folder, 'plane'))
    this.#plane = plane
    await plane.addApi()
    for (let index = 0; index < edgeCount && !this.#ending.aborted; index += 1) {
      const edge = await ControlledEdge.start(plane, path.join(folder, `site-${index + 1}`), ['--json'])
      edge.uplink.lostShare = 0.5
      this.#edges.push(edge)
      this.#editors.push(new Editor(edge, plane.apiUrls, this.#random))
    }
    this.#drill = new KillDrill(plane, this.#edges, waveSeconds)
  }

  /** Resolves when the time is over and everything runs again. */
  async run(): Promise<void> {
    this.#beganAt = performance.now()
    const over = new AbortController()
    const all = AbortSignal.any([over.signal, this.#ending])
    const beside = [
      ...this.#editors.map((editor) => editor.runUntil(all)),
      ...this.#edges.map((edge, index) => this.#cutOff(edge, this.#plan.outages[index] ?? [], all)),
      this.#watchMemory(all),
    ]
    try {
      await Promise.race([this.#strikeAll(), failing(beside)])
      await this.#until(this.#options.minutes * 60_000)
    } finally {
      over.abort()
      await Promise.all(beside)
      for (const { uplink } of this.#edges) await uplink.heal()
    }
  }

  /** Returns a line of progress while it runs. */
  progress(): string {
    const { lost, passed } = this.#acknowledgements()
    const { acknowledged, unknown } = this.#changes()
    const cut = this.#edges.filter((edge) => edge.uplink.isCut).length
    const killed = Object.values(this.#struck).reduce((sum, count) => sum + count, 0)
    const now = (who: Who) => `${((this.#memory.get(who)?.at(-1) ?? 0) / mebibyte).toFixed(0)} MiB`
    return [
      `${((performance.now() - this.#beganAt) / 60_000).toFixed(1)} of ${this.#options.minutes} min`,
      `killed ${killed} of ${this.#options.kills}`,
      `${cut} of ${edgeCount} edges cut off`,
      `acknowledgements ${lost} lost, ${passed} passed`,
      `changes ${acknowledged} acknowledged, ${unknown} in doubt`,
      `API ${now('API, never killed')}, edge ${now('edge, never killed')}`,
    ].join(' | ')
  }

  /** Waits until everything is reported, and checks what is there. */
  async check(): Promise<SoakResult> {
    const { drill, plane } = this.#started()
    const unsettled: string[] = []
    const within = async (what: string, work: Promise<void>) => {
      const limit = delay(settleLimitMs, true, { ref: false, signal: this.#ending })
      if (await Promise.race([work.then(() => false), limit])) unsettled.push(what)
    }
    await within(`not all is reported after ${settleLimitMs / 1000} s`, drill.settle())
    const db = createDb(plane.databaseUrl)
    try {
      for (const [index, edge] of this.#edges.entries())
        await within(`edge ${index + 1} has not the last desired state`, stateDiffers(db, edge, this.#ending))
      const lost = await Promise.all(this.#editors.map((editor) => lostChanges(db, editor)))
      return {
        minutes: (performance.now() - this.#beganAt) / 60_000,
        struck: this.#struck,
        cutMinutes: this.#plan.outages.map((outages) => cutMs(outages) / 60_000),
        drill: await drill.check(),
        acknowledgements: this.#acknowledgements(),
        changes: this.#changes(),
        lostChanges: lost.flat(),
        refusals: this.#editors.flatMap(({ refusals }) => refusals),
        unsettled,
        memory: memoryUse(this.#memory, memoryLimits),
      }
    } finally {
      await db.$disconnect()
    }
  }

  async stop(): Promise<void> {
    await this.#drill?.stop()
    for (const edge of this.#edges) await edge.stop()
    await this.#plane?.stop()
  }

  #started(): { drill: KillDrill; plane: ControlPlane } {
    if (!this.#drill || !this.#plane) throw new Error('the soak was not started')
    return { drill: this.#drill, plane: this.#plane }
  }

  async #strikeAll(): Promise<void> {
    const { drill } = this.#started()
    for (const { atMs, victim, edgeIndex } of this.#plan.strikes) {
      await this.#until(atMs)
      if (this.#ending.aborted) return
      await drill.strike(victim, edgeIndex)
      this.#struck[victim] = (this.#struck[victim] ?? 0) + 1
    }
  }

  async #cutOff(edge: ControlledEdge, outages: { fromMs: number; untilMs: number }[], over: AbortSignal) {
    for (const { fromMs, untilMs } of outages) {
      await this.#until(fromMs, over)
      if (over.aborted) return
      await edge.uplink.cut()
      await this.#until(untilMs, over)
      await edge.uplink.heal()
    }
  }

  async #watchMemory(over: AbortSignal): Promise<void> {
    const { plane } = this.#started()
    const [steadyApi] = plane.otherApis
    const note = (who: Who, pid: number | undefined) => {
      const bytes = pid === undefined ? null : residentBytes(pid)
      if (bytes !== null) this.#memory.get(who)?.push(bytes)
    }
    while (!over.aborted) {
      note('API, killed', plane.api.pid)
      note('API, never killed', steadyApi?.pid)
      for (const [index, edge] of this.#edges.entries())
        note(index < mortalEdgeCount ? 'edges, killed' : 'edge, never killed', edge.process.pid)
      await delay(sampleIntervalMs, undefined, { signal: over }).catch(() => undefined)
    }
  }

  /** Resolves this many milliseconds after the start, or at the end if that comes first. */
  async #until(atMs: number, over = this.#ending): Promise<void> {
    const leftMs = this.#beganAt + atMs - performance.now()
    if (leftMs > 0) await delay(leftMs, undefined, { signal: over }).catch(() => undefined)
  }

  #acknowledgements(): { lost: number; passed: number } {
    const sum = (of: (edge: ControlledEdge) => number) => this.#edges.reduce((total, edge) => total + of(edge), 0)
    return {
      lost: sum(({ uplink }) => uplink.acknowledgementsLost),
      passed: sum(({ uplink }) => uplink.acknowledgementsPassed),
    }
  }

  #changes(): { acknowledged: number; refused: number; unknown: number } {
    const sums = { acknowledged: 0, refused: 0, unknown: 0 }
    for (const { ledger } of this.#editors)
      for (const name of ['acknowledged', 'refused', 'unknown'] as const) sums[name] += ledger[name]
    return sums
  }
}

/** Rejects with the first promise that rejects, and never resolves. */
function failing(works: Promise<unknown>[]): Promise<never> {
  return new Promise((_resolve, reject) => {
    for (const work of works) work.catch(reject)
  })
}
