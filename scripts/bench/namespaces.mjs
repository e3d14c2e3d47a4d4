import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Network namespaces of one run, for a server and its clients; those that killed runs of the same benchmark left are removed. */
export class Namespaces {
  /** @param {string} bench in their names */
  constructor(bench) {
    removeLeftOvers(bench)
    this.server = `bf-${bench}-${process.pid}-s`
    this.client = `bf-${bench}-${process.pid}-c`
    for (const namespace of [this.server, this.client]) {
      run('ip', 'netns', 'add', namespace)
      run('ip', '-n', namespace, 'link', 'set', 'lo', 'up')
    }
  }

  /** Ends every program in them, at once. */
  endAll() {
    for (const namespace of [this.server, this.client]) endAllIn(namespace)
  }

  remove() {
    this.endAll()
    for (const namespace of [this.server, this.client]) run('ip', 'netns', 'del', namespace)
  }
}

function endAllIn(namespace) {
  const pids = execFileSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' }).split('\n')
  for (const pid of pids.filter((text) => text !== '')) {
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch (error) {
      // It has ended by itself.
      if (error.code !== 'ESRCH') throw error
    }
  }
}

/** `ip netns exec` becomes the program, so the process's id is the program's. */
export function inNamespace(namespace, program, args) {
  return { command: 'ip', args: ['netns', 'exec', namespace, program, ...args] }
}

export function run(command, ...args) {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
}

function removeLeftOvers(bench) {
  const listed = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })
  for (const [, namespace = '', pid = ''] of listed.matchAll(new RegExp(`^(bf-${bench}-(\\d+)-[scp])\\b`, 'gm'))) {
    if (existsSync(`/proc/${pid}`)) continue
    endAllIn(namespace)
    run('ip', 'netns', 'del', namespace)
  }
}
