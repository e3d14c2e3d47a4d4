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

/** The file calls of a running program, each of which takes longer, in every thread of it. */
export class SlowFiles {
  readonly #strace: RunningProcess
  readonly #record: string
  readonly #program: RunningProcess

  private constructor(strace: RunningProcess, record: string, program: RunningProcess) {
    this.#strace = strace
    this.#record = record
    this.#program = program
  }

  /** From now on each file call of the program takes so much longer; `record` is a file that this writes. */
  static async of(program: RunningProcess, delayMs: number, record: string): Promise<SlowFiles> {
    const strace = new RunningProcess('strace', [
      '--follow-forks',
      `--output=${record}`,
      `--trace=${calls}`,
      '--signal=none',
      `--inject=${calls}:delay_enter=${delayMs * 1000}`,
      `--attach=${program.pid}`,
    ])
    await strace.waitFor(/attached/)
    return new SlowFiles(strace, record, program)
  }

  /** Ends the delays; returns the calls of the program's first thread, and how many there were in all. */
  async end(): Promise<{ ofFirstThread: string[]; count: number }> {
    await this.#strace.stop()
    const lines = readFileSync(this.#record, 'utf8').split('\n')
    const made = lines.filter((line) => /^\d+ +\w+\(/.test(line))
    const first = String(this.#program.pid)
    return { ofFirstThread: made.filter((line) => line.split(' ', 1)[0] === first), count: made.length }
  }
}
