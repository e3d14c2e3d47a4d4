import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { RunningProcess } from '../lab/running-process.ts'
import { ControlledEdge, type ControlPlane } from './controlled-edge.ts'

/** One after the other, over the whole disk many times, so that the second stage lasts several seconds. */
const reads = Array.from({ length: 400 }, (_, index) => `${index * 20},${(index % 8) * 4096},4096`)

/** Two real edges of one site that know each other from the control plane. */
export class EdgePair {
  readonly own: ControlledEdge
  readonly other: ControlledEdge
  readonly #folder: string

  private constructor(own: ControlledEdge, other: ControlledEdge, folder: string) {
    this.own = own
    this.other = other
    this.#folder = folder
  }

  /** @param writeCache of the site's vDisk @param options further options of `serve` */
  static async start(plane: ControlPlane, folder: string, writeCache = 'device_ram'): Promise<EdgePair> {
    const own = await ControlledEdge.start(plane, path.join(folder, 'own'), ['--json'])
    const other = await ControlledEdge.start(plane, path.join(folder, 'other'), ['--json'], own)
    const { vdiskId } = own.tenant
    const { revision } = await own.api.query<{ revision: number }>('vdisk.get', { vdiskId })
    const wanted = { class: writeCache, limitBytes: null, full: 'stop' }
    await own.api.mutate('vdisk.updateWriteCache', { vdiskId, revision, ...wanted })
    writeFileSync(path.join(folder, 'reads.csv'), `time_ms,offset,length\n${reads.join('\n')}\n`)
    const pair = new EdgePair(own, other, folder)
    for (const edge of [own, other]) {
      await pair.until(
        async () =>
          (await edge.stateInForce())?.vdisks?.[0]?.writeCache?.class ===
          (writeCache === 'device_ram' ? undefined : writeCache),
      )
      await edge.process.waitFor(/of this site is heard/)
    }
    return pair
  }

  /**
   * Boots a device of the first edge at that edge's own ports: the other edge does not hear its start.
   * @param options further options of `boot`
   */
  boot(...options: string[]): RunningProcess {
    const verify = ['--verify', path.join(this.own.data, 'store/disk')]
    const trace = path.join(this.#folder, 'reads.csv')
    return this.own.bootDevice(this.own.tenant.macs[0] ?? '', trace, [...verify, ...options])
  }

  /**
   * Resolves when a device reads at its own edge: from then on it can fail over. The second stage begins earlier, and
   * the device is served only when its earlier boot has ended.
   * @param before the edge's `readCount` before the device was switched on
   */
  untilRead(before: number): Promise<void> {
    return this.until(async () => (await this.own.readCount()) > before)
  }

  /** Polls until it is so, while the edges that should run do. */
  async until(is: () => Promise<boolean>): Promise<void> {
    while (!(await is())) {
      if (!this.other.process.isRunning) throw new Error(this.other.process.output)
      await pause(50)
    }
  }

  async stop(): Promise<void> {
    for (const edge of [this.own, this.other]) {
      edge.process.kill('SIGCONT')
      await edge.stop()
    }
  }
}
