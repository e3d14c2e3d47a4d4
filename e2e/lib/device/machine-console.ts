import type { RunningProcess } from '../lab/running-process.ts'

/** The part of `bootfarm-target status` in a machine that tests use. */
export interface TargetStatus {
  edge: string
  otherEdges: string[]
  state: string
  readsWaiting: number
  readTimesUs: { waitMax: number }
  handOvers: number
  resumptions: number
  processesBefore: number
  pid: number
}

/**
 * Goes into a machine's script: reads /blob over and over, never from the machine's own memory, prints each checksum,
 * and obeys what the test writes to its console.
 */
export const listeningScript = `
# What the test writes would else stand in the middle of lines.
busybox stty -echo
while :; do
  echo 3 >/proc/sys/vm/drop_caches
  echo "SUM $(md5sum </blob | cut -d' ' -f1)"
done &
reading=$!
while read -r word rest; do
  case $word in
    status) echo "STATUS $(bootfarm-target status)" ;;
    crash) kill -SEGV "$rest" && echo "CRASHED" ;;
    ready) bootfarm-target ready busybox && echo "ACKNOWLEDGED" ;;
    run) eval "$rest" ;;
    end) kill $reading; break ;;
  esac
done
`

/** A machine that runs `listeningScript`. */
export class MachineConsole {
  readonly machine: RunningProcess
  #statuses = 0

  constructor(machine: RunningProcess) {
    this.machine = machine
  }

  get sums(): string[] {
    return [...this.machine.output.matchAll(/^SUM (\w*)\r?\n/gm)].map(([, sum = '']) => sum)
  }

  /** Resolves when it has read the whole file this many times from now on; the read in progress does not count. */
  async untilRead(times: number): Promise<void> {
    const before = this.sums.length
    await this.machine.waitUntil(`${times} sums more`, () => (this.sums.length > before + times ? true : undefined))
  }

  async status(): Promise<TargetStatus> {
    const statuses = () => [...this.machine.output.matchAll(/^STATUS (\{.*\})\r?\n/gm)]
    this.#statuses++
    this.machine.write('status\n')
    const [, text = ''] = await this.machine.waitUntil('status', () => statuses()[this.#statuses - 1])
    return JSON.parse(text) as TargetStatus
  }

  /** Polls until the status fits. */
  async statusWith(fits: (status: TargetStatus) => boolean): Promise<TargetStatus> {
    for (;;) {
      const status = await this.status()
      if (fits(status)) return status
    }
  }

  /** Crashes the stream's process as a fault would, and waits until another one takes over. */
  async crash(): Promise<void> {
    const { pid } = await this.status()
    this.machine.write(`crash ${pid}\n`)
    await this.machine.waitFor(/talks to the edge ended \(signal 11\); starting another/)
  }

  async run(command: string): Promise<void> {
    this.machine.write(`run ${command}\n`)
  }

  async ready(): Promise<void> {
    this.machine.write('ready\n')
    await this.machine.waitFor(/^ACKNOWLEDGED/m)
  }

  /** Switches it off. */
  async end(): Promise<void> {
    this.machine.write('end\n')
    await this.machine.ended
  }
}
