import { copyFileSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import type { DesiredState } from '@bootfarm/proto/uplink'
import { writeWholeTrace } from '../device/whole-trace.ts'
import { makeExt, preparedFiles } from '../images/image-files.ts'
import { x86Kernel } from '../images/loader-files.ts'
import { edgeProgram } from '../lab/programs.ts'
import { RunningProcess } from '../lab/running-process.ts'
import { ControlledEdge, type ControlPlane } from './controlled-edge.ts'
import { patterned } from './loopback-edge.ts'

const release = '6.1.0-1-simulated'

/**
 * A real edge in its own organization, with a real store that holds an image of a small system; its devices are
 * simulated.
 */
export class StoreEdge {
  readonly edge: ControlledEdge
  /** The image that can be imported. */
  readonly imagePath = 'images/linux.raw'
  readonly #store: string
  readonly #folder: string

  private constructor(edge: ControlledEdge, folder: string) {
    this.edge = edge
    this.#folder = folder
    this.#store = path.join(edge.data, 'store')
  }

  static async start(plane: ControlPlane, folder: string): Promise<StoreEdge> {
    const edge = await ControlledEdge.start(plane, folder)
    const made = new StoreEdge(edge, folder)
    const init = new RunningProcess(edgeProgram, ['vdisk', 'init', '--beside-files', '--store', made.#store])
    if ((await init.ended) !== 0) throw new Error(init.output)
    const files = {
      ...preparedFiles,
      [`boot/vmlinuz-${release}`]: x86Kernel(release, patterned(30_001)),
      [`boot/initrd.img-${release}`]: patterned(20_003),
    }
    mkdirSync(path.join(made.#store, 'images'))
    copyFileSync(makeExt(folder, 'linux', files, ['-t', 'ext4']), path.join(made.#store, made.imagePath))
    // A store that is created beside a running edge is served from its next start on.
    await edge.restart()
    return made
  }

  macOf(device: number): string {
    return this.edge.tenant.macs[device] ?? ''
  }

  /** The number of the version that the edge lets a device boot: by the state that it acts on, once it has one. */
  async versionFor(device: number): Promise<number | undefined> {
    const { devices, vdisks } = await this.#state()
    const versionId = devices.find(({ mac }) => mac === this.macOf(device))?.versionId
    return vdisks.flatMap(({ versions }) => versions).find(({ id }) => id === versionId)?.number
  }

  async #state(): Promise<DesiredState> {
    for (;;) {
      const state = await this.edge.stateInForce()
      if (state) return state
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  /** Boots a device that stays on until the process ends. Each byte that it reads must be the image's. */
  powerOn(device: number): RunningProcess {
    const staying = ['--waves', '--wave-size', '1', '--wave-interval-s', '3600']
    return this.#boot(device, path.join(this.#folder, 'trace.csv'), staying)
  }

  /** Boots a device that reads its whole disk and ends. Each byte must be the image's. */
  bootWhole(device: number): RunningProcess {
    const trace = path.join(this.#folder, 'whole-trace.csv')
    writeWholeTrace(trace, statSync(path.join(this.#store, this.imagePath)).size)
    return this.#boot(device, trace, [])
  }

  #boot(device: number, trace: string, more: string[]): RunningProcess {
    const verify = ['--speed', '0', '--verify', path.join(this.#store, this.imagePath)]
    return this.edge.bootDevice(this.macOf(device), trace, [...verify, ...more])
  }

  /** The layers of unsealed versions. */
  layers(): string[] {
    return readdirSync(path.join(this.#store, 'layers'))
  }
}
