import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { root } from '../lib/paths.mjs'

/** Returns files that git tracks or would add, as paths from the project's root, without generated ones. */
export function trackedFiles(pattern) {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  return listed.split('\n').filter((file) => pattern.test(file) && existsSync(file))
}
