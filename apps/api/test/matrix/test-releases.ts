import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** The release that the API of tests has for both processors. */
export const testRelease = '0.2.0'

/** A repository of releases, as far as the API itself reads it: the list of targets. @returns its directory */
export function makeTestReleases(versions: string[] = ['0.1.0', testRelease]): string {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-releases-'))
  mkdirSync(path.join(directory, 'metadata'))
  const targets = versions.flatMap((version) =>
    ['x86_64', 'aarch64'].map((arch) => [`bootfarm-edge/${version}/${arch}/bootfarm-edge`, {}]),
  )
  const text = JSON.stringify({ signed: { targets: Object.fromEntries(targets) } })
  writeFileSync(path.join(directory, 'metadata/1.targets.json'), text)
  return directory
}
