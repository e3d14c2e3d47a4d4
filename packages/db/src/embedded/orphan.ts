import { existsSync, readFileSync, readlinkSync, realpathSync, rmSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const stopLimitMs = 30_000
const pollIntervalMs = 20

function postmasterPid(cluster: string): number | null {
  const file = path.join(cluster, 'postmaster.pid')
  if (!existsSync(file)) return null
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0])
  return Number.isInteger(pid) && pid > 1 ? pid : null
}

/** Returns whether postmaster.pid reports that this server accepts connections (its line 8). */
export function isReady(cluster: string, pid: number): boolean {
  const file = path.join(cluster, 'postmaster.pid')
  if (!existsSync(file)) return false
  const lines = readFileSync(file, 'utf8').split('\n')
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
}

/**
 * Ends a server that outlived its supervisor, and clears away the file of one that is gone. The pid in the file may
 * belong to some other process by now: only one that is called postgres and lives in this very cluster is touched.
 * @returns true when there was one to stop
 */
export async function stopOrphan(cluster: string): Promise<boolean> {
  const pid = postmasterPid(cluster)
  if (pid === null) return false
  if (!isPostmasterOf(pid, cluster)) {
    rmSync(path.join(cluster, 'postmaster.pid'), { force: true })
    return false
  }
  const started = startTimeOf(pid)
  // SIGINT: fast shutdown, connections are ended and everything is written.
  process.kill(pid, 'SIGINT')
  for (let waitedMs = 0; started !== '' && startTimeOf(pid) === started; waitedMs += pollIntervalMs) {
    if (waitedMs > stopLimitMs) throw new Error(`An older PostgreSQL (pid ${pid}) in ${cluster} does not stop.`)
    await delay(pollIntervalMs)
  }
  return true
}

function isPostmasterOf(pid: number, cluster: string): boolean {
  try {
    const [program = ''] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return path.basename(program) === 'postgres' && readlinkSync(`/proc/${pid}/cwd`) === realpathSync(cluster)
  } catch {
    return false
  }
}

/**
 * Field 22 of /proc/PID/stat (proc_pid_stat(5)): with the pid it names one process, to its very end. Empty for one that
 * is gone.
 */
function startTimeOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const afterName = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return afterName[0] === 'Z' ? '' : (afterName[19] ?? '')
  } catch {
    return ''
  }
}
