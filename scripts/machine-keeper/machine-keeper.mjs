import { spawn } from 'node:child_process'
import { emulator } from '../lib/machines/emulator.mjs'
import { say } from '../lib/progress.mjs'

/** @typedef {Parameters<typeof emulator>[0]} Machine */

/**
 * A machine reports that it takes an order to switch itself off when it begins to do so: a wake-up a moment later is
 * meant for afterwards. A packet that came while the machine was on is remembered for this long; a network card alone
 * would ignore it.
 */
const wakeUpValidMs = 30_000

export class MachineKeeper {
  #machine
  #console
  #running = null
  #ending = false
  #wokenAtMs = Number.NEGATIVE_INFINITY

  constructor(machine, console) {
    this.#machine = machine
    this.#console = console
  }

  /** A magic packet for the machine has arrived. */
  wake() {
    this.#wokenAtMs = performance.now()
    if (!this.#running) this.powerOn('woken by a magic packet')
  }

  /** The machine must be off. */
  powerOn(why) {
    say(`${this.#machine.mac} is ${why}`)
    // The packet that has just woken it does not wake it again.
    this.#wokenAtMs = Number.NEGATIVE_INFINITY
    const { command, args } = emulator(this.#machine)
    // The kernel ends the machine with this process, however that ends.
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    child.stdout.on('data', (bytes) => this.#console.write(bytes))
    const ended = new Promise((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('close', (code, signal) => resolve(signal ?? (code === 0 ? 'powered off' : `exit ${code}`)))
    })
    this.#running = { child, ended }
    ended.then((how) => {
      this.#console.flush()
      this.#running = null
      say(`${this.#machine.mac} is off: ${how}`)
      const wasWoken = performance.now() - this.#wokenAtMs < wakeUpValidMs
      if (wasWoken && !this.#ending && how === 'powered off')
        this.powerOn('woken by a magic packet that came while it went off')
    })
  }

  /** Ends the machine for good. */
  async powerOff() {
    this.#ending = true
    this.#running?.child.kill('SIGTERM')
    await this.#running?.ended
  }
}
