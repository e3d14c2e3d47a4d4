import { type ChildProcess, spawn } from 'node:child_process'
import { lastLines, lastWords, nameOf } from './last-lines.ts'

/** A busy machine takes a while even to end a program. */
const stopLimitMs = 60_000
/** Until when the running test may wait; none outside a test. */
let limit: { at: number } | undefined
/** The processes that run now, for the message of a failed wait. */
const running = new Set<RunningProcess>()
// When the test run is ended, its programs end too.
process.on('exit', endAll)

/**
 * From now on a wait fails shortly before this time is over, and shows the programs' last output: a test's own timeout
 * names neither the program nor the awaited output. Undefined: waits have no limit.
 */
export function limitWaits(timeoutMs: number | undefined): void {
  limit = timeoutMs === undefined ? undefined : { at: performance.now() + timeoutMs * 0.95 }
}

/** Ends what a failed test has not stopped. */
export function endAll(): void {
  for (const one of running) one.kill('SIGKILL')
}

/** The last output of each running program. */
export const lastLinesOfAll = () => [...running].map(lastLines).join('\n')

/** A program under test: keeps its output and awaits its end; a test never leaves one behind. */
export class RunningProcess {
  /** For messages. */
  name: string
  output = ''
  readonly #child: ChildProcess
  readonly #ended: Promise<number | string>
  /** The process has ended, and all its output has arrived. */
  #isOver = false
  #waiters: (() => void)[] = []
  readonly #jsonLines: unknown[] = []
  /** Where the first line begins that was still incomplete when lines were last taken. */
  #linesTakenTo = 0

  /** `input` 'pipe': lets `write` reach the process. */
  constructor(command: string, args: string[], env: Record<string, string> = {}, input: 'ignore' | 'pipe' = 'ignore') {
    this.name = nameOf(command, args)
    this.#child = spawn(command, args, { stdio: [input, 'pipe', 'pipe'], env: { ...process.env, ...env } })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8')
      stream?.on('data', (text: string) => {
        this.output += text
        this.#wake()
      })
    }
    // A program that has ended reads nothing.
    this.#child.stdin?.on('error', () => {})
    running.add(this)
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve(error.message))
      this.#child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
    })
    void this.#ended.then(() => {
      this.#isOver = true
      running.delete(this)
      this.#wake()
    })
  }

  /** Its exit code, the signal that ended it, or why it could not be started. */
  get ended(): Promise<number | string> {
    return this.#withinLimit('end of it', this.#ended)
  }

  write(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** Writes the last thing that it reads. */
  end(text: string): void {
    this.#child.stdin?.end(text)
  }

  get pid(): number {
    const { pid } = this.#child
    if (pid === undefined) throw new Error('the process was not started')
    return pid
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async stop(): Promise<number | string> {
    if (this.isRunning) this.#child.kill('SIGTERM')
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), stopLimitMs)
    const result = await this.#ended
    clearTimeout(limit)
    return result
  }

  /** Waits until the output matches; fails with the output when the process ends first. */
  waitFor(pattern: RegExp): Promise<RegExpMatchArray> {
    return this.waitUntil(String(pattern), () => this.output.match(pattern) ?? undefined)
  }

  /** Waits until `look`, called again after each output, returns something; `what` describes that in messages. */
  async waitUntil<T>(what: string | (() => string), look: () => T | undefined): Promise<T> {
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      if (this.#isOver) throw new Error(`${this.name} ended before ${said(what)}:\n${this.output}`)
      const more = new Promise<void>((resolve) => this.#waiters.push(resolve))
      await this.#withinLimit(what, more)
    }
  }

  /** Returns the JSON lines printed so far; text after the last line end is still incomplete. */
  jsonLines<T>(): T[] {
    const end = this.output.lastIndexOf('\n') + 1
    const lines = this.output.slice(this.#linesTakenTo, end).split('\n')
    this.#linesTakenTo = end
    for (const line of lines) if (line.startsWith('{')) this.#jsonLines.push(JSON.parse(line))
    return [...this.#jsonLines] as T[]
  }

  /** Fails when the test's time is nearly over before `promise` resolves. */
  async #withinLimit<T>(what: string | (() => string), promise: Promise<T>): Promise<T> {
    const mine = limit
    if (!mine) return promise
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<never>((_, reject) => {
      const check = () => {
        // A wait whose test is over meanwhile has no limit any more.
        if (mine === limit) reject(new Error(lastWords(this, said(what), running)))
      }
      timer = setTimeout(check, Math.max(0, mine.at - performance.now())).unref()
    })
    try {
      return await Promise.race([promise, over])
    } finally {
      clearTimeout(timer)
    }
  }

  #wake(): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const resolve of waiters) resolve()
  }
}

const said = (what: string | (() => string)) => (typeof what === 'string' ? what : what())
