import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** The release that the API of tests has for both processors. */
export const testRelease = '0.2.0'

/** As long as a version can be, and without a place to break the line; older than the others. */
export const hostileRelease = `0.0.1-hacked.${'W'.repeat(51)}`

/** A repository of releases, as far as the API itself reads it. @returns its directory */
export function makeTestReleases(): string {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-releases-'))
  listTestReleases(directory, ['0.1.0', testRelease, hostileRelease])
  return directory
}

/** Writes the list of targets, which is all that the API itself reads of a repository. */
export function listTestReleases(directory: string, versions: string[]): void {
  mkdirSync(path.join(directory, 'metadata'), { recursive: true })
  const targets = versions.flatMap((version) =>
    ['x86_64', 'aarch64'].map((arch) => [`bootfarm-edge/${version}/${arch}/bootfarm-edge`, {}]),
  )
  const text = JSON.stringify({ signed: { targets: Object.fromEntries(targets) } })
  writeFileSync(path.join(directory, 'metadata/1.targets.json'), text)
}
