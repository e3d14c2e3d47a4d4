import { AsyncLocalStorage } from 'node:async_hooks'
import { readdirSync, readFileSync } from 'node:fs'
import os from 'node:os'

/** The kernel's unit in /proc, on every Linux that Node supports. */
const ticksPerSecond = 100

/**
 * The processor time of the programs of a piece of work, whatever else runs.
 * @type {AsyncLocalStorage<{ seconds: number }>}
 */
const accounts = new AsyncLocalStorage()

let counted = 0

/**
 * @returns {Promise<{ result: Awaited<T>, processorSeconds: number }>} of all programs that `work` ran and waited for.
 * @template T
 */
export async function withProcessorTime(work) {
  const account = { seconds: 0 }
  const result = await accounts.run(account, work)
  return { result, processorSeconds: account.seconds }
}

/**
 * Counts what `child` and everything that it waited for used, for the work that called this. The kernel keeps only the
 * sum over all ended children: its growth when one ends is that child's.
 * @param {import('node:child_process').ChildProcess} child
 */
export function countProcessorTime(child) {
  const account = accounts.getStore()
  child.once('exit', () => {
    const total = secondsOfChildren()
    if (account) account.seconds += total - counted
    counted = total
  })
}

/**
 * Returns the seconds of processor time that a process has used, with its ended threads: the fields `utime` and `stime`
 * (proc(5)).
 */
export function secondsOfProcess(pid) {
  const [user, system] = statFields(pid, 11)
  return (user + system) / ticksPerSecond
}

/** Returns the same for a PostgreSQL server: the postmaster with its ended children, and the live ones. */
export function secondsOfServer(postmaster) {
  let ticks = statFields(postmaster, 11, 4).reduce((sum, one) => sum + one, 0)
  for (const { pid, parent } of processes()) {
    try {
      if (parent === postmaster) ticks += statFields(pid, 11).reduce((sum, one) => sum + one, 0)
    } catch {
      // It ended meanwhile: the postmaster counts it from now on.
    }
  }
  return ticks / ticksPerSecond
}

/** Returns the seconds that all processors of this machine together have worked, and rested, since it started. */
export function secondsOfMachine() {
  const sums = { busy: 0, idle: 0 }
  for (const { times } of os.cpus()) {
    sums.busy += (times.user + times.nice + times.sys + times.irq) / 1000
    sums.idle += times.idle / 1000
  }
  return sums
}

/** Returns the processes that this one started, that those started, and so on. */
export function processesBelow(pid) {
  const all = processes()
  const below = []
  for (let parents = [pid]; parents.length > 0; ) {
    parents = all.filter(({ parent }) => parents.includes(parent)).map((one) => one.pid)
    below.push(...parents)
  }
  return below
}

function processes() {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      return [{ pid: Number(name), parent: statFields(name, 1)[0] }]
    } catch {
      return []
    }
  })
}

/** The fields `cutime` and `cstime` (proc(5)). */
function secondsOfChildren() {
  const [user, system] = statFields('self', 13)
  return (user + system) / ticksPerSecond
}

/** Reads numbers from the field `first` on, counted from behind the name, which may contain spaces. */
function statFields(pid, first, count = 2) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(first, first + count).map(Number)
}
