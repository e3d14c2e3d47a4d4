import { spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { say } from '../lib/progress.mjs'
import { quietEnv } from '../lib/run.mjs'

const restartDelayMs = 200
const restartDelayMaxMs = 5_000
/** A process that ran this long restarts at once with the short delay. */
const settledAfterMs = 10_000
const stopLimitMs = 10_000
const logSizeMax = 20 * 1024 * 1024

/**
 * Starts processes in an order, restarts each when it dies, and stops them in the opposite order. Each has a separate
 * process group, so that Ctrl-C in the terminal reaches only this supervisor.
 */
export class Processes {
  #data
  #running = []
  #stopping = false
  constructor(data) {
    this.#data = data
    mkdirSync(path.join(data, 'logs'), { recursive: true })
    mkdirSync(path.join(data, 'run'), { recursive: true })
  }

  /**
   * @param {{ name: string, command: string, args: string[], env?: object, cwd?: string, ready: (child) =>
   *   Promise<boolean> }} spec ready: asked again and again until true; the process ending first is an error.
   */
  async start(spec) {
    if (this.#stopping) throw new UserError('stopped while starting.')
    const entry = { spec, child: null, ended: null, delayMs: restartDelayMs }
    this.#running.push(entry)
    this.#launch(entry)
    const readyBy = performance.now() + (spec.readyLimitMs ?? 60_000)
    while (!(await spec.ready())) {
      if (this.#stopping) throw new UserError('stopped while starting.')
      if (entry.failedEarly) throw new UserError(`${spec.name} ended while starting:\n${this.#logTail(spec.name)}`)
      if (performance.now() > readyBy)
        throw new UserError(`${spec.name} was not ready in time:\n${this.#logTail(spec.name)}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    entry.wasReady = true
  }

  #launch(entry) {
    const { name, command, args, env, cwd } = entry.spec
    const log = this.#openLog(name)
    const startedAt = performance.now()
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...quietEnv, ...env },
      detached: true,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    entry.child = child
    if (child.pid) writeFileSync(this.#pidFile(name), `${child.pid} ${startTimeOf(child.pid)}`)
    entry.ended = new Promise((resolve) => {
      const end = (why) => {
        resolve()
        if (this.#stopping) return
        if (!entry.wasReady) {
          entry.failedEarly = true
          return
        }
        if (performance.now() - startedAt > settledAfterMs) entry.delayMs = restartDelayMs
        say(`${name} ended (${why}); starting it again. Log: ${this.#logFile(name)}`)
        setTimeout(() => !this.#stopping && this.#launch(entry), entry.delayMs)
        entry.delayMs = Math.min(entry.delayMs * 2, restartDelayMaxMs)
      }
      child.once('error', (error) => end(error.message))
      child.once('exit', (code, signal) => end(signal ?? `exit code ${code}`))
    })
  }

  /** Stops everything, last started first. */
  async stop() {
    this.#stopping = true
    for (const entry of this.#running.toReversed()) {
      const { child, spec } = entry
      if (child?.pid && child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM')
        const limit = setTimeout(() => {
          say(`${spec.name} did not stop in time and is killed.`)
          child.kill('SIGKILL')
        }, stopLimitMs)
        await entry.ended
        clearTimeout(limit)
      }
      rmSync(this.#pidFile(spec.name), { force: true })
    }
  }

  /**
   * Ends processes that an earlier supervisor left behind when it was killed; only those that are certainly the same
   * ones.
   */
  async stopLeftovers(names) {
    for (const name of names) {
      const file = this.#pidFile(name)
      if (!existsSync(file)) continue
      const [pid, startTime] = readFileSync(file, 'utf8').split(' ')
      for (let tries = 0; startTime && startTimeOf(pid) === startTime && tries < stopLimitMs / 50; tries++) {
        if (tries === 0) say(`Stopping ${name}, left over from a start that was killed.`)
        process.kill(Number(pid), tries < 100 ? 'SIGTERM' : 'SIGKILL')
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      rmSync(file, { force: true })
    }
  }

  #pidFile = (name) => path.join(this.#data, 'run', `${name}.pid`)
  #logFile = (name) => path.join(this.#data, 'logs', `${name}.log`)

  #openLog(name) {
    const file = this.#logFile(name)
    if (existsSync(file) && statSync(file).size > logSizeMax) truncateSync(file)
    return openSync(file, 'a', 0o600)
  }

  #logTail(name) {
    return existsSync(this.#logFile(name)) ? readFileSync(this.#logFile(name), 'utf8').slice(-3000) : '(no log)'
  }
}

/**
 * Field 22 of /proc/PID/stat (proc_pid_stat(5)): with the pid it names one process for as long as the machine is up.
 */
function startTimeOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const afterName = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return afterName[0] === 'Z' ? '' : afterName[19]
  } catch {
    return ''
  }
}
