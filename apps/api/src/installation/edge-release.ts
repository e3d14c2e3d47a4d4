import { z } from 'zod'

/** Processors that edges are built for, as `uname -m` names them. */
export const edgeArchitectures = ['x86_64', 'aarch64'] as const
export type EdgeArchitecture = (typeof edgeArchitectures)[number]

/**
 * What a release is, and what its signature covers: five lines (docs/decisions/0010-edge-installation.md). Written by
 * scripts/release/sign-edge.mjs, read here, by install/edge.sh, and by `bootfarm-edge verify-release`.
 */
const releaseText =
  /^bootfarm-edge-release-v1\n(\d+\.\d+\.\d+[0-9A-Za-z.+-]{0,64})\n(x86_64|aarch64)\n([0-9a-f]{64})\n(\d{1,12})\n$/

export interface EdgeRelease {
  version: string
  arch: string
  sha256: string
  sizeBytes: number
}

/** Null for anything that is not one. */
export function parseRelease(text: string): EdgeRelease | null {
  const [, version, arch, sha256, size] = releaseText.exec(text) ?? []
  if (!version || !arch || !sha256 || !size) return null
  return { version, arch, sha256, sizeBytes: Number(size) }
}

/** What "Add edge" needs to know before it makes a token. */
export const edgeInstallation = z.object({
  /** Where the script and the edges' uplink are, without a slash at its end. */
  url: z.string(),
  releases: z.array(
    z.object({
      arch: z.enum(edgeArchitectures),
      /** Null where there is none to install. */
      version: z.string().nullable(),
      /** Why there is none. */
      problem: z.string().nullable(),
    }),
  ),
})
