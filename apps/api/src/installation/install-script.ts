import { readFileSync } from 'node:fs'
import { AppError } from '../errors/app-error.ts'
import type { EdgeReleases } from './edge-releases.ts'

const template = new URL('../../install/edge.sh', import.meta.url)
/** Characters that may be between single quotes of a shell; an address of a control plane has no others. */
const plainUrl = /^https?:\/\/[A-Za-z0-9.\-_~:/[\]]+$/
const plainKey = /^[A-Za-z0-9+/]{43}=$/

/** The script that installs an edge, which knows this control plane and its release key. Throws `unavailable`. */
export function installScript(releases: EdgeReleases): string {
  const { url } = releases.settings
  const { publicKey } = releases
  if (!plainUrl.test(url) || !plainKey.test(publicKey))
    throw new AppError('unavailable', {
      public: 'No edge can be installed: EDGE_URL or BOOTFARM_RELEASE_KEY of the control plane is malformed.',
    })
  return readFileSync(template, 'utf8').replaceAll('@CONTROL_URL@', url).replaceAll('@RELEASE_KEY@', publicKey)
}
