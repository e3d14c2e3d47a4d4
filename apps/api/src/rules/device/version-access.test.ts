import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  accessOf,
  resolveVersions,
  type VersionChoices,
  type VersionFacts,
  versionFor,
  writes,
} from './version-access.ts'

const now = new Date('2026-11-21T12:00:00Z')
const past = new Date(now.getTime() - 1)
const future = new Date(now.getTime() + 1)

type Shape = Omit<VersionFacts, 'id' | 'number'>
/** Every way in which a version can be kept. */
const shapes: Shape[] = [
  { state: 'maintenance', releasedAt: null, sealedAt: null, sealAskedAt: null },
  { state: 'maintenance', releasedAt: null, sealedAt: null, sealAskedAt: past },
  { state: 'test', releasedAt: null, sealedAt: past, sealAskedAt: null },
  { state: 'test', releasedAt: null, sealedAt: null, sealAskedAt: null },
  { state: 'released', releasedAt: null, sealedAt: past, sealAskedAt: null },
  { state: 'released', releasedAt: past, sealedAt: past, sealAskedAt: null },
  { state: 'released', releasedAt: future, sealedAt: past, sealAskedAt: null },
]
const ids = ['v1', 'v2', 'v3']
const chosen = [null, ...ids, 'gone']

/** All vDisks with up to three versions, with all that can be chosen of them. */
function* worlds(): Generator<{ choices: VersionChoices; versions: VersionFacts[] }> {
  for (let count = 0; count <= ids.length; count++)
    for (let code = 0; code < shapes.length ** count; code++) {
      const versions = ids.slice(0, count).flatMap((id, index) => {
        const shape = shapes[Math.floor(code / shapes.length ** index) % shapes.length]
        return shape ? [{ id, number: index + 1, ...shape }] : []
      })
      if (versions.filter(({ state }) => state === 'maintenance').length > 1) continue
      for (const defaultVersionId of chosen)
        for (const overrideVersionId of chosen)
          for (const pendingVersionId of chosen)
            yield {
              choices: {
                defaultVersionId,
                overrideVersionId,
                pendingVersionId,
                maintenanceDeviceId: 'writer',
              },
              versions,
            }
    }
}

/** The rules of docs/guides/versions.md again: in order, the first that holds. */
function expectedOf(choices: VersionChoices, versions: VersionFacts[]) {
  const newestFirst = [...versions].sort((one, other) => other.number - one.number)
  const isReleased = (one: VersionFacts) => one.state === 'released' && one.sealedAt !== null
  const isPending = (one: VersionFacts) =>
    isReleased(one) && one.id === choices.pendingVersionId && one.releasedAt === future
  const isOut = (one: VersionFacts) => isReleased(one) && !isPending(one)
  const standard = [
    (one: VersionFacts) => isOut(one) && one.id === choices.pendingVersionId,
    (one: VersionFacts) => isOut(one) && one.id === choices.defaultVersionId,
    isOut,
  ].flatMap((rule) => newestFirst.find(rule) ?? [])[0]
  const override = newestFirst.find((one) => isOut(one) && one.id === choices.overrideVersionId)
  const production = override ?? standard ?? null
  const test =
    newestFirst.find(
      (one) =>
        isPending(one) ||
        (one.state === 'test' && one.sealedAt !== null && one.number > (standard ? standard.number : 0)),
    ) ?? production
  const written = newestFirst.find((one) => one.state === 'maintenance' && one.sealAskedAt === null)
  const accessFor = (one: VersionFacts) =>
    one.state === 'maintenance'
      ? 'maintenance'
      : one.sealedAt === null
        ? null
        : one.state === 'test'
          ? 'test'
          : one === override
            ? 'override'
            : isPending(one)
              ? 'pending'
              : one === standard
                ? 'default'
                : null
  return { production, test, writer: written ?? test, isWritten: written !== undefined, accessFor }
}

test('each device gets its version, and each version its access, for every choice', () => {
  let count = 0
  for (const { choices, versions } of worlds()) {
    count += 1
    const expected = expectedOf(choices, versions)
    const resolved = resolveVersions(choices, versions, now)
    const gets = (id: string, deviceType: 'production' | 'test' | 'maintenance') =>
      versionFor(resolved, { id, deviceType })
    const found = [
      gets('writer', 'production'),
      gets('writer', 'test'),
      gets('writer', 'maintenance'),
      gets('other', 'maintenance'),
      ...versions.map((version) => accessOf(resolved, version)),
      writes(resolved, { id: 'writer', deviceType: 'maintenance' }),
    ]
    const wanted = [
      expected.production,
      expected.test,
      expected.writer,
      expected.test,
      ...versions.map(expected.accessFor),
      expected.isWritten,
    ]
    if (found.some((value, index) => value !== wanted[index]))
      expect(found, JSON.stringify({ choices, versions })).toEqual(wanted)
  }
  expect(count).toBeGreaterThan(30_000)
})

test('a version becomes the default at its instant, and no earlier', () => {
  const versions = [
    { id: 'v1', number: 1, state: 'released', releasedAt: null, sealedAt: past, sealAskedAt: null },
    { id: 'v2', number: 2, state: 'released', releasedAt: future, sealedAt: past, sealAskedAt: null },
  ] satisfies VersionFacts[]
  const choices = {
    defaultVersionId: 'v1',
    overrideVersionId: null,
    pendingVersionId: 'v2',
    maintenanceDeviceId: null,
  }
  const at = (instant: Date) => resolveVersions(choices, versions, instant).production?.id
  expect([at(new Date(future.getTime() - 1)), at(future)]).toEqual(['v1', 'v2'])
})

test('test devices do not go back to a version left in test once a newer one is the default', () => {
  const versions = [
    { id: 'v1', number: 1, state: 'test', releasedAt: null, sealedAt: past, sealAskedAt: null },
    { id: 'v2', number: 2, state: 'released', releasedAt: past, sealedAt: past, sealAskedAt: null },
  ] satisfies VersionFacts[]
  const choices = {
    defaultVersionId: 'v2',
    overrideVersionId: null,
    pendingVersionId: null,
    maintenanceDeviceId: null,
  }
  expect(resolveVersions(choices, versions, now).test?.id).toBe('v2')
})

test('no device boots a version that is neither sealed nor being written', () => {
  for (const { choices, versions } of worlds()) {
    const resolved = resolveVersions(choices, versions, now)
    for (const deviceType of ['production', 'test', 'maintenance'] as const)
      for (const id of ['writer', 'other']) {
        const version = versionFor(resolved, { id, deviceType })
        const isWriter = id === 'writer' && deviceType === 'maintenance'
        if (version?.sealedAt === null && !(isWriter && version.state === 'maintenance'))
          throw new Error(`${deviceType} ${id} boots ${JSON.stringify(version)}`)
      }
  }
})

/**
 * Compares a state's content for a vDisk with a future release with the version that its production devices boot by
 * that alone. The edge's tests use the same cases: packages/proto/vectors/releases-v1.json. They are all cases of
 * vDisks with up to three versions.
 */

const instantMs = 1_795_003_600_000
const stateMs = instantMs - 3_600_000
const numbers = [1, 2, 3]
const chosenNumbers = [null, ...numbers]

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
const releaseShapes = [
  { state: 'test', releasedAt: null },
  { state: 'released', releasedAt: new Date(stateMs - 1) },
  { state: 'released', releasedAt: new Date(instantMs) },
] as const

function* vdisks(): Generator<{ choices: VersionChoices; versions: VersionFacts[] }> {
  for (let count = 1; count <= numbers.length; count++)
    for (let code = 0; code < releaseShapes.length ** count; code++) {
      const versions = numbers.slice(0, count).flatMap((number, index) => {
        const shape = releaseShapes[Math.floor(code / releaseShapes.length ** index) % releaseShapes.length]
        return shape ? [{ id: String(number), number, ...shape, sealedAt: new Date(0), sealAskedAt: null }] : []
      })
      for (const defaultNumber of chosenNumbers)
        for (const override of chosenNumbers)
          for (const pending of chosenNumbers) {
            // A version with a future release instant is the vDisk's pending release.
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

test('a state’s release is enough to act at its instant as the control plane would', () => {
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
    readFileSync(new URL('../../../../../packages/proto/vectors/releases-v1.json', import.meta.url), 'utf8'),
  )
  expect({ version: 1, cases: [...cases.values()] }).toEqual(golden)
})
