import { readFileSync } from 'node:fs'
import { RunningProcess } from '../lab/running-process.ts'

/**
 * Calls that may wait for a disk. A `preadv2` with RWF_NOWAIT, the edge's reads from memory, does not, and `read` and
 * `write` are those of pipes and sockets as well.
 */
const calls =
  'fsync,fdatasync,sync_file_range,pwrite64,pwritev,pread64,ftruncate,fallocate,' +
  'openat,openat2,mkdirat,unlinkat,renameat,renameat2,copy_file_range,sendfile'

/** Why `SlowFiles` cannot be used here; undefined where it can. */
export function slowFilesMissing(): string | undefined {
  if (process.getuid?.() !== 0) return 'delaying the calls of a process needs root'
  return (process.env.BOOTFARM_MISSING_PACKAGES ?? '').split(' ').includes('strace')
    ? 'not installed: strace'
    : undefined
}

/** When something began and ended: milliseconds since 1970. */
export interface Interval {
  begin: number
  end: number
}

export interface SlowCalls {
  ofFirstThread: string[]
  count: number
  /** How many of these lie within one of the calls, from begin to end. */
  within(intervals: Interval[]): number
}

/** The file calls of a running program, each of which takes longer, in every thread of it. */
export class SlowFiles {
  readonly #strace: RunningProcess
  readonly #record: string
  readonly #program: RunningProcess
  readonly #delayMs: number

  private constructor(strace: RunningProcess, record: string, program: RunningProcess, delayMs: number) {
    this.#strace = strace
    this.#record = record
    this.#program = program
    this.#delayMs = delayMs
  }

  /** From now on each file call of the program takes so much longer; `record` is a file that this writes. */
  static async of(program: RunningProcess, delayMs: number, record: string): Promise<SlowFiles> {
    const strace = new RunningProcess('strace', [
      '--follow-forks',
      `--output=${record}`,
      `--trace=${calls}`,
      '--absolute-timestamps=format:unix,precision:us',
      '--signal=none',
      `--inject=${calls}:delay_enter=${delayMs * 1000}`,
      `--attach=${program.pid}`,
    ])
    await strace.waitFor(/attached/)
    return new SlowFiles(strace, record, program, delayMs)
  }

  /** Ends the delays; returns the calls of all threads, and apart from them those of the program's first thread. */
  async end(): Promise<SlowCalls> {
    await this.#strace.stop()
    const lines = readFileSync(this.#record, 'utf8').split('\n')
    const made = lines.filter((line) => /^\d+ +[\d.]+ \w+\(/.test(line))
    const first = String(this.#program.pid)
    const begins = made.map((line) => Number(line.split(/ +/, 2)[1]) * 1000)
    const isWithin = ({ begin, end }: Interval) => begins.some((at) => at <= begin && end <= at + this.#delayMs)
    return {
      ofFirstThread: made.filter((line) => line.split(' ', 1)[0] === first),
      count: made.length,
      within: (intervals) => intervals.filter(isWithin).length,
    }
  }
}
