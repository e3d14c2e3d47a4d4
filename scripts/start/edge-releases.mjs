import { existsSync } from 'node:fs'
import path from 'node:path'
import { arm64EdgeProgram, edgeProgram } from '../lib/paths.mjs'
import { ensureReleaseKey, signEdge } from '../release/sign-edge.mjs'

/**
 * What site servers install: this build, and one for arm64 where it was built. Returns the API's settings for it.
 * @param {string} data
 */
export function releasesIn(data) {
  const key = path.join(data, 'release.key')
  const out = path.join(data, 'edge-releases')
  const publicKey = ensureReleaseKey(key)
  for (const program of [edgeProgram, arm64EdgeProgram]) if (existsSync(program)) signEdge({ key, out, program })
  return { BOOTFARM_EDGE_BINARIES: out, BOOTFARM_RELEASE_KEY: publicKey }
}
