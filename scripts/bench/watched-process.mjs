import { spawn } from 'node:child_process'
import { UserError } from '../lib/fail.mjs'

/** A program whose output is watched, with the time at which a line came. */
export class WatchedProcess {
  output = ''
  startedAtMs = performance.now()
  #child
  #ended
  #onOutput = () => {}

  /** @param {{ command: string, args: string[], env?: NodeJS.ProcessEnv, endsWithInput?: boolean }} what */
  constructor({ command, args, env = process.env, endsWithInput = false }) {
    this.#child = spawn(command, args, { stdio: [endsWithInput ? 'pipe' : 'ignore', 'pipe', 'pipe'], env })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', (text) => {
        this.output += text
        this.#onOutput()
      })
    }
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', resolve)
      this.#child.once('close', resolve)
    })
  }

  get pid() {
    return this.#child.pid
  }

  /** @returns {Promise<number | null>} the exit code */
  get ended() {
    return this.#ended
  }

  /**
   * @param {RegExp} pattern
   * @param {number} limitMs
   * @returns {Promise<{ match: RegExpMatchArray, afterMs: number }>} ms from the process's start until the output
   *   matched
   */
  waitFor(pattern, limitMs) {
    return new Promise((resolve, reject) => {
      const fail = (why) =>
        reject(new UserError(`${why} before ${pattern}; its output ends with:\n${this.output.slice(-3000)}`))
      const timer = setTimeout(() => fail(`nothing came for ${limitMs / 1000} s`), limitMs)
      this.#onOutput = () => {
        const match = this.output.match(pattern)
        if (!match) return
        clearTimeout(timer)
        this.#onOutput = () => {}
        resolve({ match, afterMs: performance.now() - this.startedAtMs })
      }
      void this.#ended.then(() => {
        clearTimeout(timer)
        fail('the process ended')
      })
      this.#onOutput()
    })
  }

  /** @param {NodeJS.Signals} name */
  signal(name) {
    this.#child.kill(name)
  }

  /** Kills it at once: nothing of a benchmark is worth keeping. */
  async stop() {
    this.#child.kill('SIGKILL')
    await this.#ended
  }
}
