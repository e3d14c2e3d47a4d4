import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import path from 'node:path'

/** PostgreSQL refuses to run as root: there it runs as one of these accounts. */
const accountNames = ['postgres', 'nobody']

export interface Account {
  uid: number
  gid: number
}

/** Null where the process's own account will do. */
export function serverAccount(): Account | null {
  if (process.getuid?.() !== 0) return null
  for (const name of accountNames) {
    try {
      return { uid: idOf('-u', name), gid: idOf('-g', name) }
    } catch {
      // No such account here; try the next one.
    }
  }
  throw new Error(
    `PostgreSQL does not run as root, and there is no account named ${accountNames.join(' or ')}; start as another user.`,
  )
}

/** True when every folder above `target` lets any account through. */
export function isReachableByAll(target: string): boolean {
  for (let folder = path.dirname(path.resolve(target)); ; folder = path.dirname(folder)) {
    if (existsSync(folder) && (statSync(folder).mode & 0o001) === 0) return false
    if (folder === path.dirname(folder)) return true
  }
}

function idOf(option: string, name: string): number {
  return Number(execFileSync('id', [option, name], { stdio: ['ignore', 'pipe', 'ignore'] }))
}
