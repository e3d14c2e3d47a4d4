import { randomUUID } from 'node:crypto'
import { type Db, type DbTransaction, inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { type Alarm, type ClassState, emptyClass, watchBoot } from './detect/class-watch.ts'
import { type DevicePace, timeOf } from './detect/pace.ts'
import { openFinding } from './open-finding.ts'
import { type BootRow, type ClassKey, classKeyOf, classTextOf, takeNextBoots, valuesOf } from './read-watched-boots.ts'

/**
 * One transaction takes so many changes of boots; a boot in progress is one, too. Each transaction writes the state of
 * each class that has a boot in it, about 10 KB: fewer of them cost more.
 */
const changesAtOnce = 4_000
/** An organization's turn: the next one is seconds later. */
const turnsMax = 100
/** An organization that is watched from now on learns from so many changes before. */
const learnedChanges = 20_000n
/** Of a transaction: far more than it needs. */
const timeoutMs = 60_000
/** Of an organization; boots of others are not watched. */
const classesMax = 2_000

/** Watches the boots that ended since the last time, of all organizations, for what makes them slower or fail. */
export async function watchBoots({ db, clock }: PlatformContext): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_boots_to_watch() as id`
  await forEachOrganization(
    { db },
    async (organizationId) => {
      for (let turn = 0; turn < turnsMax; turn += 1) if (!(await watchSome(db, organizationId, clock()))) return
    },
    rows.map(({ id }) => id),
  )
}

/** @returns whether there may be more */
function watchSome(db: Db, organizationId: string, now: Date): Promise<boolean> {
  const work = async (transaction: DbTransaction) => {
    const { change, last } = await lockWatch(transaction, organizationId)
    const taken = await takeNextBoots(transaction, { organizationId, change, limit: changesAtOnce })
    // What has no boot is numbered, too. Numbers become visible in their order: all up to this one were read.
    const next = taken?.change ?? last
    await transaction.bootWatch.update({ where: { organizationId }, data: { change: next } })
    if (taken && taken.boots.length > 0) await watchAll(transaction, { organizationId, boots: taken.boots, now })
    return taken !== null
  }
  return inOrganization(db, organizationId, work, { timeoutMs })
}

/** A restore from a backup may have taken the feed back behind the cursor: then what follows is new. */
async function lockWatch(db: DbTransaction, organizationId: string): Promise<{ change: bigint; last: bigint }> {
  const feed = await db.bootFeed.findUnique({ where: { organizationId }, select: { lastChange: true } })
  const last = feed?.lastChange ?? 0n
  await db.$executeRaw`insert into boot_watch (organization_id, change)
    values (${organizationId}::uuid, ${last > learnedChanges ? last - learnedChanges : 0n}) on conflict do nothing`
  const [row] = await db.$queryRaw<{ change: bigint }[]>`
    select change from boot_watch where organization_id = ${organizationId}::uuid for update`
  const change = row?.change ?? last
  return { change: change > last ? last : change, last }
}

interface Watching {
  organizationId: string
  boots: BootRow[]
  now: Date
}

interface OpenClass {
  id: string
  key: ClassKey
  state: ClassState
  paces: Map<string, KnownPace>
  changedDevices: Set<string>
}

interface KnownPace {
  pace: DevicePace | null
  failed: boolean
}

async function watchAll(db: DbTransaction, { organizationId, boots, now }: Watching): Promise<void> {
  const classes = await openClasses(db, organizationId, boots)
  const alarms: { of: OpenClass; alarm: Alarm; state: ClassState }[] = []
  for (const boot of boots) {
    const of = classes.get(classTextOf(classKeyOf(boot)))
    if (!of) continue
    // Of the class as it was: an alarm makes it learn from the beginning.
    const { times, spread, tolerance } = of.state
    const before = { times, spread, tolerance }
    const alarm = watchOne(of, boot)
    if (alarm) alarms.push({ of, alarm, state: { ...of.state, ...before } })
  }
  await keepClasses(db, organizationId, { classes: [...classes.values()], now })
  for (const { of, alarm, state } of alarms) await openFinding(db, { organizationId, key: of.key, alarm, state, now })
}

function watchOne(of: OpenClass, boot: BootRow): Alarm | null {
  const known = of.paces.get(boot.deviceId) ?? { pace: null, failed: false }
  const isFailed = boot.outcome !== 'ready'
  const { pace, alarm } = watchBoot(of.state, {
    deviceId: boot.deviceId,
    pace: known.pace,
    atMs: boot.startedAt.getTime(),
    time: isFailed ? null : timeOf(Math.max(1, Number(boot.totalUs))),
    // One device that fails again and again is one failure.
    isFailed: isFailed && known.failed ? null : isFailed,
    values: valuesOf(boot),
  })
  of.paces.set(boot.deviceId, { pace, failed: isFailed })
  of.changedDevices.add(boot.deviceId)
  return alarm
}

async function openClasses(
  db: DbTransaction,
  organizationId: string,
  boots: BootRow[],
): Promise<Map<string, OpenClass>> {
  const keys = new Map(boots.map((boot) => [classTextOf(classKeyOf(boot)), classKeyOf(boot)]))
  const asked = JSON.stringify([...keys.values()])
  const rows = await db.$queryRaw<(ClassKey & { id: string; state: ClassState })[]>`
    select class.id::text, class.site_id::text as "siteId", class.vdisk_id::text as "vdiskId", class.hardware, class.load,
      class.state
    from jsonb_to_recordset(${asked}::jsonb) as asked ("siteId" uuid, "vdiskId" uuid, hardware text, load text)
    join boot_class as class on class.organization_id = ${organizationId}::uuid and class.site_id = asked."siteId"
      and class.vdisk_id = asked."vdiskId" and class.hardware = asked.hardware and class.load = asked.load`
  const classes = new Map<string, OpenClass>()
  for (const { id, state, ...key } of rows)
    classes.set(classTextOf(key), { id, key, state, paces: new Map(), changedDevices: new Set() })
  let count = classes.size < keys.size ? await db.bootClass.count({ where: { organizationId } }) : 0
  for (const [text, key] of keys) {
    if (classes.has(text) || count >= classesMax) continue
    count += 1
    classes.set(text, { id: randomUUID(), key, state: emptyClass(), paces: new Map(), changedDevices: new Set() })
  }
  await readPaces(db, organizationId, { classes, boots })
  return classes
}

async function readPaces(
  db: DbTransaction,
  organizationId: string,
  { classes, boots }: { classes: Map<string, OpenClass>; boots: BootRow[] },
): Promise<void> {
  const byId = new Map([...classes.values()].map((of) => [of.id, of]))
  const rows = await db.devicePace.findMany({
    where: {
      organizationId,
      classId: { in: [...byId.keys()] },
      deviceId: { in: [...new Set(boots.map(({ deviceId }) => deviceId))] },
    },
    select: { classId: true, deviceId: true, count: true, mean: true, failed: true },
  })
  for (const { classId, deviceId, count, mean, failed } of rows)
    byId.get(classId)?.paces.set(deviceId, { pace: count > 0 ? { count, mean } : null, failed })
}

async function keepClasses(
  db: DbTransaction,
  organizationId: string,
  { classes, now }: { classes: OpenClass[]; now: Date },
): Promise<void> {
  const rows = classes.map(({ id, key, state }) => ({ id, ...key, state }))
  await db.$executeRaw`
    insert into boot_class (organization_id, id, site_id, vdisk_id, hardware, load, state, updated_at)
    select ${organizationId}::uuid, id, "siteId", "vdiskId", hardware, load, state, ${now}
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as row (id uuid, "siteId" uuid, "vdiskId" uuid,
      hardware text, load text, state jsonb)
    on conflict (organization_id, id) do update set state = excluded.state, updated_at = excluded.updated_at`
  const paces = classes.flatMap(({ id, paces: known, changedDevices }) =>
    [...changedDevices].map((deviceId) => {
      const { pace = null, failed = false } = known.get(deviceId) ?? {}
      return { classId: id, deviceId, count: pace?.count ?? 0, mean: pace?.mean ?? 0, failed }
    }),
  )
  await db.$executeRaw`
    insert into device_pace (organization_id, class_id, device_id, count, mean, failed)
    select ${organizationId}::uuid, "classId", "deviceId", count, mean, failed
    from jsonb_to_recordset(${JSON.stringify(paces)}::jsonb) as row ("classId" uuid, "deviceId" uuid, count integer,
      mean double precision, failed boolean)
    on conflict (organization_id, class_id, device_id) do update set count = excluded.count, mean = excluded.mean,
      failed = excluded.failed
    where (device_pace.count, device_pace.mean, device_pace.failed) is distinct from
      (excluded.count, excluded.mean, excluded.failed)`
}
