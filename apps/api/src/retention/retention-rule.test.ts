import { expect, test } from 'vitest'
import { resolveVersions, type VersionChoices } from '../rules/device/version-access.ts'
import { keptVersions, type RetainedVersion } from './retention-rule.ts'

const now = new Date('2026-11-20T12:00:00Z')
const noChoices: VersionChoices = {
  defaultVersionId: null,
  overrideVersionId: null,
  pendingVersionId: null,
  maintenanceDeviceId: null,
}

function version(number: number, more: Partial<RetainedVersion> = {}): RetainedVersion {
  const releasedAt = new Date(now.getTime() - (100 - number) * 86_400_000)
  const facts = { id: `v${number}`, number, state: 'released' as const, releasedAt, sealedAt: now, sealAskedAt: null }
  return Object.assign(facts, { isProtected: false }, more)
}

/** The reason of each version, by number. */
function reasons(versions: RetainedVersion[], keptReleases: number, choices: Partial<VersionChoices> = {}) {
  const resolved = resolveVersions(Object.assign({}, noChoices, choices), versions, now)
  const kept = keptVersions(versions, resolved, keptReleases)
  return versions.map(({ id }) => kept.get(id)?.kind ?? null)
}

test('the last released versions stay, by the time of their release', () => {
  const late = version(2, { releasedAt: now })
  expect(reasons([version(1), late, version(3), version(4), version(5)], 2)).toEqual([
    null,
    'newest',
    null,
    null,
    'default',
  ])
  // Those from before releases were recorded come first, in the order of their numbers.
  const old = [1, 2, 3].map((number) => version(number, { releasedAt: null }))
  expect(reasons([...old, version(4)], 2)).toEqual([null, null, 'newest', 'default'])
})

test('what devices boot or will boot stays, however old it is', () => {
  const all = [1, 2, 3, 4, 5].map((number) => version(number))
  const later = { releasedAt: new Date(now.getTime() + 1) }
  const pending = version(6, later)
  expect(
    reasons([...all, pending], 1, { defaultVersionId: 'v2', overrideVersionId: 'v1', pendingVersionId: 'v6' }),
  ).toEqual(['override', 'default', null, null, 'newest', 'pending'])
})

test('what was never released, is being made or is protected stays, and counts for nothing', () => {
  const tested = version(3, { state: 'test', releasedAt: null })
  const written = version(4, { state: 'maintenance', releasedAt: null, sealedAt: null })
  const made = version(5, { sealedAt: null })
  const kept = version(1, { isProtected: true })
  expect(reasons([kept, version(2), tested, written, made, version(6), version(7)], 2)).toEqual([
    'protected',
    null,
    'unreleased',
    'unreleased',
    'unreleased',
    'newest',
    'default',
  ])
})
