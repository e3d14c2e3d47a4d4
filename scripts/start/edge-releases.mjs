import { existsSync } from 'node:fs'
import path from 'node:path'
import { arm64EdgeProgram, edgeProgram } from '../lib/paths.mjs'
import { ensureReleaseKey, signEdge } from '../release/sign-edge.mjs'

const keyIn = (data) => path.join(data, 'release.key')
const releasesIn = (data) => path.join(data, 'edge-releases')

/** The API's settings for the installation of edges. */
export function releaseSettings(data) {
  return { BOOTFARM_EDGE_BINARIES: releasesIn(data), BOOTFARM_RELEASE_KEY: ensureReleaseKey(keyIn(data)) }
}

/** This build, and one for arm64 if it was built. */
export function signReleases(data) {
  for (const program of [edgeProgram, arm64EdgeProgram])
    if (existsSync(program)) signEdge({ key: keyIn(data), out: releasesIn(data), program })
}
