import { expect, test } from 'vitest'
import { useTestSite } from '../../test/test-site.ts'
import { accessOf, resolveVersions } from '../rules/device/version-access.ts'
import type { VdiskDetail } from './schema.ts'
import type { VersionPreview } from './version-schema.ts'
import { allowedSteps, apply, type VdiskVersions, type VersionStep, versionSteps } from './version-steps.ts'

const site = useTestSite('image_manager')
const minuteMs = 60_000
const root = Uint8Array.from({ length: 32 }, () => 1)
const nothing: VdiskVersions = {
  defaultVersionId: null,
  overrideVersionId: null,
  pendingVersionId: null,
  maintenanceDeviceId: null,
  versions: [],
}

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function pick<T>(random: () => number, from: readonly T[]): T | undefined {
  return from[Math.floor(random() * from.length)]
}

/** Any step, about any version that there is, whether it is allowed or not. */
function anyStep(random: () => number, { versions, pendingVersionId }: VdiskVersions, now: Date): VersionStep {
  if (random() < (pendingVersionId === null ? 0.02 : 0.3)) return { kind: 'release' }
  const number = Math.max(0, ...versions.map((version) => version.number)) + 1
  const made = { id: `v${number}`, number, state: random() < 0.5 ? 'test' : 'released' } as const
  const versionId = pick(random, versions)?.id
  if (versionId === undefined || random() < 0.15)
    return random() < 0.5 ? { kind: 'register', version: made } : { kind: 'make', version: made }
  if (random() < 0.2) return { kind: 'finish', versionId, manifestRoot: root }
  const kind = pick(random, versionSteps) ?? 'promote'
  if (kind === 'cancelRelease' || kind === 'clearOverride') return { kind }
  if (kind === 'startMaintenance') return { kind, versionId, begun: { ...made, deviceId: 'pc' } }
  const releaseAt = random() < 0.5 ? null : new Date(now.getTime() + Math.floor(random() * 5) * minuteMs)
  return kind === 'promote' ? { kind, versionId, releaseAt } : { kind, versionId }
}

function problemsOf(versions: VdiskVersions, now: Date): string[] {
  const resolved = resolveVersions(versions, versions.versions, now)
  const accesses = versions.versions.map((version) => accessOf(resolved, version))
  const several = (['default', 'override', 'pending', 'maintenance'] as const).filter(
    (access) => accesses.filter((one) => one === access).length > 1,
  )
  const isReleased = versions.versions.some(({ id, state, sealedAt }) => {
    return state === 'released' && sealedAt !== null && id !== resolved.pending?.version.id
  })
  return [
    ...several.map((access) => `two versions are ${access}`),
    ...(isReleased && resolved.production === null ? ['production devices boot nothing'] : []),
    ...(versions.maintenanceDeviceId !== null && resolved.maintenance === null ? ['a device writes no version'] : []),
    ...(new Set(versions.versions.map(({ id }) => id)).size < versions.versions.length ? ['a version is twice'] : []),
  ]
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'no sequence of steps gives two defaults, nor offers what is refused (seed %i)',
  (seed) => {
    const random = randomOf(seed)
    const taken = new Set<string>()
    let [versions, now] = [nothing, new Date('2026-11-21T12:00:00Z')]
    for (let count = 0; count < 4_000; count += 1) {
      now = new Date(now.getTime() + Math.floor(random() * 2 * minuteMs))
      const step = anyStep(random, versions, now)
      const { next, refusal } = apply(versions, step, now)
      if ('versionId' in step && step.kind !== 'finish') {
        const isOffered = allowedSteps(versions, now).get(step.versionId)?.includes(step.kind) ?? false
        // An instant may be refused where the step is not.
        if (!('releaseAt' in step && step.releaseAt)) expect([step, isOffered]).toEqual([step, refusal === undefined])
      }
      if (refusal) {
        expect(refusal.text).toMatch(/^[A-Z].*\.$/)
        continue
      }
      taken.add(step.kind)
      versions = next
      expect(problemsOf(versions, now), JSON.stringify(step)).toEqual([])
      if (versions.versions.length > 12) versions = nothing
    }
    expect(taken.size).toBe(versionSteps.length + 4)
  },
)

const vdisk = () => site().query<VdiskDetail>('vdisk.get', { vdiskId: site().tenant.vdiskId })
const bootedOf = ({ versions, overrideVersionId, defaultVersionId }: VdiskDetail) =>
  versions.find(({ id }) => id === (overrideVersionId ?? defaultVersionId))?.number ?? null

type Calls = Record<string, (versionId: string, seen: VdiskDetail) => [path: string, input: object]>
const calls: Calls = {
  promote: (versionId, { revision }) => ['version.promote', { versionId, vdiskRevision: revision }],
  revert: (versionId, { revision }) => ['version.revert', { versionId, vdiskRevision: revision }],
  override: (versionId, { revision }) => ['version.override', { versionId, vdiskRevision: revision }],
  cancelRelease: (_versionId, { id, revision }) => ['version.cancelRelease', { vdiskId: id, revision }],
  clearOverride: (_versionId, { id, revision }) => ['version.clearOverride', { vdiskId: id, revision }],
  delete: (versionId) => ['vdisk.removeVersion', { versionId }],
}
const previewed = new Set(['promote', 'revert', 'override', 'delete'])

async function register(state: 'test' | 'released'): Promise<void> {
  const { vdiskId } = site().tenant
  const { versions } = await vdisk()
  const diskPath = `a/${versions.length + 1}/disk.raw`
  await site().mutate('vdisk.registerVersion', { vdiskId, diskPath, sizeBytes: 512, state })
}

/** Takes steps that the page offers and steps that it does not, and compares the answers with the preview. */
async function takeStep(random: () => number, problems: string[]): Promise<void> {
  const seen = await vdisk()
  const version = pick(random, seen.versions)
  const name = pick(random, Object.keys(calls)) ?? ''
  const call = calls[name]
  if (!version || !call) return
  const said = `${name} of version ${version.number}`
  const isOffered = version.allowedSteps.some((step) => step === name)
  const isOfVersion = name !== 'cancelRelease' && name !== 'clearOverride'
  const preview = previewed.has(name)
    ? await site().query<VersionPreview>('version.preview', { versionId: version.id, action: name })
    : null
  const { status, text } = await site().tryMutation(...call(version.id, seen))
  const isTaken = status === 200
  // A step of the vDisk is taken wherever one of its versions offers it. The devices that boot a version decide whether
  // it may be deleted.
  const offered = isOfVersion
    ? isOffered
    : seen.versions.some(({ allowedSteps: all }) => all.some((one) => one === name))
  if (name === 'delete' ? isTaken && !isOffered : isTaken !== offered)
    problems.push(`${said}: offered ${offered}: ${text}`)
  if (preview && (preview.refusals.length === 0) !== isTaken)
    problems.push(`${said}: previewed ${preview.refusals}: ${text}`)
  if (preview?.refusals.length === 1 && !isTaken && !text.includes(preview.refusals[0] ?? ''))
    problems.push(`${said}: ${preview.refusals} became ${text}`)
  const booted = bootedOf(await vdisk())
  if (preview && isTaken && (preview.after?.number ?? null) !== booted)
    problems.push(`${said}: previewed ${preview.after?.number}, production devices boot ${booted}`)
}

test.each([11, 12])('what is previewed and offered is what the service then does (seed %i)', async (seed) => {
  const random = randomOf(seed)
  const problems: string[] = []
  await register('test')
  for (let count = 0; count < 30; count += 1) {
    if (random() < 0.2) await register(random() < 0.6 ? 'test' : 'released')
    if (random() < 0.2) {
      const seen = await vdisk()
      const tested = seen.versions.find(({ access }) => access === 'test')
      const releaseAt = new Date(site().api.clock.now.getTime() + minuteMs).toISOString()
      if (tested)
        await site().tryMutation('version.promote', { versionId: tested.id, vdiskRevision: seen.revision, releaseAt })
    }
    if (random() < 0.2) site().api.clock.advance(minuteMs / 2)
    await takeStep(random, problems)
  }
  expect(problems).toEqual([])
})
