import { spawn } from 'node:child_process'
import { emulator } from '../lib/machines/emulator.mjs'
import { say } from '../lib/progress.mjs'

/** @typedef {Parameters<typeof emulator>[0]} Machine */

/** One machine, on or off. */
export class MachineKeeper {
  #machine
  #console
  #running = null

  constructor(machine, console) {
    this.#machine = machine
    this.#console = console
  }

  /** A machine that is on takes no notice. */
  powerOn(why) {
    if (this.#running) return
    say(`${this.#machine.mac} is ${why}`)
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
    })
  }

  async powerOff() {
    this.#running?.child.kill('SIGTERM')
    await this.#running?.ended
  }
}
