import { AsyncLocalStorage } from 'node:async_hooks'
import { readFileSync } from 'node:fs'

/** The kernel's unit in /proc, on every Linux that Node runs on. */
const ticksPerSecond = 100

/** What the programs of a piece of work cost, whatever runs beside it. @type {AsyncLocalStorage<{ seconds: number }>} */
const accounts = new AsyncLocalStorage()

let counted = 0

/** @returns {Promise<{ result: Awaited<T>, processorSeconds: number }>} of all programs that `work` ran and waited for. @template T */
export async function withProcessorTime(work) {
  const account = { seconds: 0 }
  const result = await accounts.run(account, work)
  return { result, processorSeconds: account.seconds }
}

/**
 * Counts what `child` and all that it waited for have used, for the work that called this. The kernel knows only the sum over
 * all children that ended: what it grew by when one ends is that one's.
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

/** The fields `cutime` and `cstime` (proc(5)); the name before them may have spaces in it. */
function secondsOfChildren() {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond
}
