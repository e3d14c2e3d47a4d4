import { randomUUID } from 'node:crypto'
import type { DbTransaction } from '@bootfarm/db'
import { emit } from '../events/event-bus.ts'
import { type Alarm, type ClassState, type Factor, trialBoots } from './detect/class-watch.ts'
import { smallestShift } from './detect/smallest-shift.ts'
import { sentenceOf, valueNameOf } from './finding-text.ts'
import { evidenceOf, readSides } from './read-evidence.ts'
import type { ClassKey } from './read-watched-boots.ts'

/** Of an organization, not closed. Whoever has so many reads none of the next ones. */
const openMax = 200
/** A change of the audit log is near if it is at most this much before the first boot. */
const nearMs = 3_600_000
/** Clocks of edges are a little behind. */
const behindMs = 300_000

interface Found {
  organizationId: string
  key: ClassKey
  alarm: Alarm
  /** Before the boot that raised the alarm. */
  state: ClassState
  now: Date
}

/** Makes a finding of an alarm, unless the same is open, and announces it. */
export async function openFinding(db: DbTransaction, found: Found): Promise<void> {
  const { organizationId, key, alarm, state, now } = found
  const { factor, value, kind } = alarm
  if ((await db.finding.count({ where: { organizationId, closedAt: null } })) >= openMax) return
  const since = new Date(alarm.sinceMs)
  const sides = await readSides(db, { organizationId, key, factor, value, since })
  const names = await readNames(db, organizationId, [alarm, ...alarm.alsoChanged])
  const evidence = {
    ...(await evidenceOf(db, organizationId, sides)),
    alsoChanged: alarm.alsoChanged.map((also) => ({ ...also, name: valueNameOf(also.factor, also.value, names) })),
    smallestShift: smallestShift(state, { isKnown: false, affected: trialBoots }),
  }
  const { siteId, vdiskId, hardware, load } = key
  const vdisk = await db.vdisk.findUnique({
    where: { organizationId_id: { organizationId, id: vdiskId } },
    select: { name: true },
  })
  const row = {
    organizationId,
    id: randomUUID(),
    siteId,
    vdiskId,
    hardware,
    load,
    kind,
    factor,
    value,
    since,
    vdiskName: vdisk?.name ?? 'a vDisk that is gone',
    valueName: valueNameOf(factor, value, names),
    openedAt: now,
    checkedAt: now,
    auditEntryId: factor === 'setting' && names.has(value) ? value : await nearestChange(db, found),
    evidence,
  }
  const { count } = await db.finding.createMany({ data: [row], skipDuplicates: true })
  if (count === 0) return
  const sentence = sentenceOf(kind, row.valueName, evidence)
  await emit('findingChanged', { db, now, finding: { ...row, sentence, state: 'open' } })
}

/** The newest change of the class's site or vDisk, or of the version, shortly before its first boot. */
async function nearestChange(db: DbTransaction, { organizationId, key, alarm }: Found): Promise<string | null> {
  const { siteId, vdiskId } = key
  const entry = await db.auditEntry.findFirst({
    where: {
      organizationId,
      objectId: { in: [siteId, vdiskId, ...(alarm.factor === 'version' ? [alarm.value] : [])] },
      at: { gte: new Date(alarm.sinceMs - nearMs), lte: new Date(alarm.sinceMs + behindMs) },
    },
    orderBy: [{ at: 'desc' }, { id: 'desc' }],
    select: { id: true },
  })
  return entry?.id ?? null
}

/** Names of versions and of changes of settings, by id. */
async function readNames(
  db: DbTransaction,
  organizationId: string,
  values: { factor: Factor; value: string }[],
): Promise<Map<string, string>> {
  const idsOf = (wanted: Factor) =>
    values.flatMap(({ factor, value }) => (factor === wanted && value.includes('-') ? [value] : []))
  const versions = await db.vdiskVersion.findMany({
    where: { organizationId, id: { in: idsOf('version') } },
    select: { id: true, number: true },
  })
  const entries = await db.auditEntry.findMany({
    where: { organizationId, id: { in: idsOf('setting') } },
    select: { id: true, action: true, objectName: true },
  })
  return new Map([
    ...versions.map(({ id, number }) => [id, `version ${number}`] as const),
    ...entries.map(
      ({ id, action, objectName }) => [id, `the change ${action} of ${objectName ?? 'settings'}`] as const,
    ),
  ])
}
