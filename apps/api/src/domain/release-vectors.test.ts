import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { resolveVersions, type VersionChoices, type VersionFacts } from './version-access.ts'

/**
 * What a state says of a vDisk with a release to come, and what its production devices boot by that alone. The edge's tests hold it to
 * the same cases: packages/proto/vectors/releases-v1.json. They are all that vDisks of up to three versions come to.
 */

const instantMs = 1_795_003_600_000
const stateMs = instantMs - 3_600_000
const numbers = [1, 2, 3]
const chosen = [null, ...numbers]

interface ReleaseCase {
  stated: {
    default: number | null
    override: number | null
    pending: { version: number; atUnixMs: number } | null
    versions: number[]
  }
  production: number
  boots: { unixMs: number; production: number }[]
}

/** A version is in test, was released, or will be at the instant. */
const shapes = [
  { state: 'test', releasedAt: null },
  { state: 'released', releasedAt: new Date(stateMs - 1) },
  { state: 'released', releasedAt: new Date(instantMs) },
] as const

function* vdisks(): Generator<{ choices: VersionChoices; versions: VersionFacts[] }> {
  for (let count = 1; count <= numbers.length; count++)
    for (let code = 0; code < shapes.length ** count; code++) {
      const versions = numbers.slice(0, count).flatMap((number, index) => {
        const shape = shapes[Math.floor(code / shapes.length ** index) % shapes.length]
        return shape ? [{ id: String(number), number, ...shape, sealedAt: new Date(0), sealAskedAt: null }] : []
      })
      for (const defaultNumber of chosen)
        for (const override of chosen)
          for (const pending of chosen) {
            // What is released at an instant to come is the vDisk's pending release.
            const isToCome = ({ id, releasedAt }: VersionFacts) =>
              releasedAt?.getTime() === instantMs && id !== String(pending)
            if (versions.some(isToCome)) continue
            const [defaultVersionId, overrideVersionId, pendingVersionId] = [defaultNumber, override, pending].map(
              (number) => (number === null ? null : String(number)),
            ) as [string | null, string | null, string | null]
            yield {
              choices: { defaultVersionId, overrideVersionId, pendingVersionId, maintenanceDeviceId: null },
              versions,
            }
          }
    }
}

function caseOf(choices: VersionChoices, versions: VersionFacts[]): ReleaseCase | null {
  const productionAt = (unixMs: number) => resolveVersions(choices, versions, new Date(unixMs)).production
  const now = resolveVersions(choices, versions, new Date(stateMs))
  // Devices that boot nothing are not in a state.
  const production = now.production?.number
  if (production === undefined) return null
  return {
    stated: {
      default: now.default?.number ?? null,
      override: now.override?.number ?? null,
      pending: now.pending ? { version: now.pending.version.number, atUnixMs: now.pending.at.getTime() } : null,
      versions: [production, ...versions.map(({ number }) => number).filter((number) => number !== production)],
    },
    production,
    boots: [stateMs, instantMs - 1, instantMs, instantMs + 365 * 86_400_000].map((unixMs) => ({
      unixMs,
      production: productionAt(unixMs)?.number ?? 0,
    })),
  }
}

test('what a state says of a release is enough to do at its instant what the control plane would say', () => {
  const cases = new Map<string, ReleaseCase>()
  for (const { choices, versions } of vdisks()) {
    const found = caseOf(choices, versions)
    if (!found) continue
    // The same words must never stand for two outcomes.
    const words = JSON.stringify([found.stated, found.production])
    const earlier = cases.get(words)
    if (earlier) expect(found).toEqual(earlier)
    cases.set(words, found)
  }
  const golden: unknown = JSON.parse(
    readFileSync(new URL('../../../../packages/proto/vectors/releases-v1.json', import.meta.url), 'utf8'),
  )
  expect({ version: 1, cases: [...cases.values()] }).toEqual(golden)
})
