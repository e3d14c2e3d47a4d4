import { type ChildProcess, spawn } from 'node:child_process'

/** A program under test: its output kept, its end awaited; a test never leaves one behind. */
export class RunningProcess {
  output = ''
  readonly ended: Promise<number | string>
  readonly #child: ChildProcess
  #waiters: (() => void)[] = []

  /** `input` 'pipe': `write` reaches it. */
  constructor(
    command: string,
    args: string[],
    env: Record<string, string> = {},
    input: 'ignore' | 'pipe' = 'ignore',
  ) {
    this.#child = spawn(command, args, { stdio: [input, 'pipe', 'pipe'], env: { ...process.env, ...env } })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8')
      stream?.on('data', (text: string) => {
        this.output += text
        this.#wake()
      })
    }
    this.ended = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve(error.message))
      this.#child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'))
    })
    void this.ended.then(() => this.#wake())
  }

  write(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** The last thing that it reads. */
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
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), 10_000)
    const result = await this.ended
    clearTimeout(limit)
    return result
  }

  /** Waits until the output fits; fails with the output when the process ends before. */
  async waitFor(pattern: RegExp): Promise<RegExpMatchArray> {
    for (;;) {
      const match = this.output.match(pattern)
      if (match) return match
      if (!this.isRunning) throw new Error(`ended before it printed ${pattern}:\n${this.output}`)
      await new Promise<void>((resolve) => this.#waiters.push(resolve))
    }
  }

  /** The JSON lines printed so far. */
  jsonLines<T>(): T[] {
    return (
      this.output
        .split('\n')
        // What is behind the last line end is not whole yet.
        .slice(0, -1)
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as T)
    )
  }

  #wake(): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const resolve of waiters) resolve()
  }
}
