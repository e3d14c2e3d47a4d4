import { setTimeout as delay } from 'node:timers/promises'
import { edgePrograms, quickPrograms } from '../lib/paths.mjs'
import { buildDemo, ensurePackages, ensureZig, startEdgeBuild, turbo, warmZig } from '../lib/toolchain.mjs'

/** The time to find out that nothing changed. */
const unchangedMs = 3_000

/** Builds what a start needs, all of it side by side; each part can be awaited separately. */
export class Builds {
  isStopped = false
  #releaseBuild

  /**
   * @param {{ isOptimised: boolean }} options true: waits for the optimised programs, which take minutes the first time
   */
  constructor({ isOptimised }) {
    // If Zig cannot be downloaded, this reports it before anything long starts. Mostly it was downloaded beside Node.
    const zig = ensureZig()
    this.packages = zig.then(() => ensurePackages())
    this.database = this.packages.then(() => turbo(['generate'], 'Making the database client'))
    this.dashboard = this.database.then(() => turbo(['build'], 'Building the dashboard'))
    this.programs = zig.then((program) => this.#buildPrograms(program, isOptimised))
    this.all = Promise.all([this.packages, this.database, this.dashboard, this.programs])
  }

  /**
   * Uses the optimised programs if they exist or are required. Otherwise the demo starts with programs that are built
   * in seconds, and the others are built in the background for the next start.
   */
  async #buildPrograms(zig, isOptimised) {
    await warmZig(zig)
    this.#releaseBuild = startEdgeBuild(zig, { isBehind: !isOptimised })
    if (isOptimised) {
      await this.#releaseBuild.done
      return edgePrograms
    }
    this.#releaseBuild.done.catch(() => undefined)
    if (await Promise.race([this.#releaseBuild.done.then(() => true), delay(unchangedMs, false)])) return edgePrograms
    await buildDemo(zig)
    return quickPrograms
  }

  /** Settles when the optimised programs are built. */
  get release() {
    return this.#releaseBuild.done
  }

  /** Ends a build that still runs in the background. */
  stop() {
    this.isStopped = true
    this.#releaseBuild?.stop()
  }
}
