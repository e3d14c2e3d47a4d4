import { closeSync, existsSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import path from 'node:path'
import { ConsoleLines } from '../lib/machines/console-lines.mjs'

const fileSizeMax = 4 * 1024 * 1024
/** A line without its end is written when nothing more came for this long. */
const partialAfterMs = 300

/**
 * Records a machine's console as `DIR/52-54-00-78-00-00.log`, one line of `UNIX_MS TEXT` per line; the API shows it
 * beside the machine's boots. A full file is renamed to `.log.1`, in place of the previous one.
 */
export class ConsoleFile {
  #file
  #descriptor
  #size
  #timer
  #lines = new ConsoleLines((line, atMs) => this.#append(`${atMs} ${line}\n`))

  constructor(directory, mac) {
    mkdirSync(directory, { recursive: true })
    this.#file = path.join(directory, `${mac.replaceAll(':', '-')}.log`)
    this.#size = existsSync(this.#file) ? statSync(this.#file).size : 0
    this.#descriptor = openSync(this.#file, 'a', 0o600)
  }

  /** @param {Buffer} bytes */
  write(bytes) {
    clearTimeout(this.#timer)
    this.#lines.write(bytes, Date.now())
    if (this.#lines.hasPartialLine) this.#timer = setTimeout(() => this.flush(), partialAfterMs)
  }

  flush() {
    clearTimeout(this.#timer)
    this.#lines.flush()
  }

  #append(line) {
    if (this.#size > fileSizeMax) {
      closeSync(this.#descriptor)
      renameSync(this.#file, `${this.#file}.1`)
      this.#descriptor = openSync(this.#file, 'a', 0o600)
      this.#size = 0
    }
    this.#size += writeSync(this.#descriptor, line)
  }
}
