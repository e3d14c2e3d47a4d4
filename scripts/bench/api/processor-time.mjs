import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts processor time in hundredths of a second for every program (getconf CLK_TCK). */
const ticksPerSecond = 100

/** @returns {number} seconds of processor time that the process has used, in user and kernel mode, its ended children's not counted */
export function processorSeconds(pid) {
  const { own } = timesOf(pid)
  return own
}

/** @returns {number} as above, of PostgreSQL: its first process, its children that run and those that have ended */
export function postgresSeconds(pid) {
  for (;;) {
    const { own, endedChildren } = timesOf(pid)
    let seconds = own + endedChildren
    for (const child of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      const times = timesOf(child)
      if (times.parent === pid) seconds += times.own
    }
    // One that ended between the two is in neither: look again.
    if (timesOf(pid).endedChildren === endedChildren) return seconds
  }
}

/** proc_pid_stat(5): a process that has just ended has used nothing more. */
function timesOf(pid) {
  let text
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return { parent: 0, own: 0, endedChildren: 0 }
  }
  // The program's name stands in parentheses and may hold anything; the state is the third field.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const at = (number) => Number(fields[number - 3])
  return {
    parent: at(4),
    own: (at(14) + at(15)) / ticksPerSecond,
    endedChildren: (at(16) + at(17)) / ticksPerSecond,
  }
}
