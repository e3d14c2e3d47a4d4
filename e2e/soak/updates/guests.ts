import type { RunningProcess } from '../../lib/lab/running-process.ts'
import { type Account, noteStall } from './account.ts'

const blobBlocks = 256

/**
 * Runs in a virtual machine: writes one file after the other, syncs, and reads this one and an older one again from
 * the edge, since the machine's own memory forgets them. Each round prints how long that took, in hundredths of a
 * second of the machine's own clock.
 */
export const guestScript = `
bootfarm-target ready busybox && echo "RUNS"
now() { read up rest </proc/uptime; echo "\${up%.*}\${up#*.}"; }
part() { busybox dd if=/blob bs=4096 skip=$(($1 % ${blobBlocks - 8})) count=8 2>/dev/null; echo "$1"; }
blob=$(md5sum </blob)
mkdir -p /written
round=0
while true; do
  slot=$((round % 8))
  sum=$(part $round | md5sum)
  begin=$(now)
  part $round >/written/$slot || echo "WRONG $round is not written"
  sync
  written=$(now)
  echo 3 >/proc/sys/vm/drop_caches
  [ "$(md5sum </written/$slot)" = "$sum" ] || echo "WRONG $round has other bytes"
  read_again=$(now)
  eval "sum_$slot=\\$sum"
  older=$(((round + 1) % 8))
  eval "sum=\\$sum_$older"
  [ -z "$sum" ] || [ "$(md5sum </written/$older)" = "$sum" ] || echo "WRONG $older, written earlier, has other bytes"
  if [ $((round % 10)) = 0 ]; then
    [ "$(md5sum </blob)" = "$blob" ] || echo "WRONG blob"
  fi
  echo "ROUND $round $((written - begin)) $((read_again - written))"
  round=$((round + 1))
  sleep 2
done
`

/** What the system's own kernel prints when its disk fails. */
const kernelErrors = /^.*(?:I\/O error|EXT4-fs error|Buffer I\/O|Remounting filesystem read-only|the disk is lost).*$/i
const wrong = /^WRONG .*$/
const round = /^ROUND \d+ (\d+) (\d+)\r?$/

/** Follows the console of a virtual machine that runs `guestScript`. */
export class Guest {
  readonly name: string
  readonly #machine: RunningProcess
  #takenTo = 0

  constructor(name: string, machine: RunningProcess) {
    this.name = name
    this.#machine = machine
  }

  /** Resolves once it has done its first round. */
  async runs(): Promise<void> {
    await this.#machine.waitFor(/^ROUND 0 /m)
  }

  /** Adds what it has printed since the last time. */
  take(account: Account): void {
    const { output } = this.#machine
    const end = output.lastIndexOf('\n') + 1
    for (const line of output.slice(this.#takenTo, end).split('\n')) {
      const [, written, read] = line.match(round) ?? []
      if (written !== undefined) {
        account.rounds += 1
        noteStall(account, this.name, 10 * Math.max(Number(written), Number(read)))
      }
      if (wrong.test(line) || kernelErrors.test(line)) account.errors.push(`${this.name}: ${line.trim()}`)
    }
    this.#takenTo = end
    if (!this.#machine.isRunning) account.errors.push(`${this.name} has ended: ${output.slice(-500)}`)
  }
}
