import { type DbTransaction, inOrganization } from '@bootfarm/db'
import { readPlainBoots } from '../boot/public.ts'
import { forEachOrganization } from '../context/for-each-organization.ts'
import { lockRow, ownRow, type PlatformContext } from '../context/service-context.ts'
import { askToBoot } from '../device/public.ts'
import { endExperiment } from './end-experiment.ts'
import { settleTrial, type TrialEnd } from './settle-trial.ts'

/** A device that does not begin to boot is asked again so often, and so late. */
const ordersMax = 3
const orderAgainMs = 120_000
/** So many of a device's trials in a row without a boot: it will not boot for the others. */
const missedMax = 2
const missedReason = 'no boot began with its settings: is the device away, or its edge older than experiments?'

/** Takes the next step of each experiment. Another process may be first: it finds what that one has done. */
export async function advanceExperiments({ db, clock }: PlatformContext): Promise<void> {
  const rows = await db.$queryRaw<{ id: string }[]>`select id::text from organizations_with_open_experiments() as id`
  await forEachOrganization(
    { db },
    async (organizationId) => {
      const open = await inOrganization(db, organizationId, (tenant) =>
        tenant.experiment.findMany({
          where: { organizationId, state: { in: ['running', 'paused'] } },
          orderBy: { id: 'asc' },
          select: { id: true },
        }),
      )
      for (const { id } of open)
        await inOrganization(db, organizationId, (tenant) => advance(tenant, { organizationId, id }, clock()))
    },
    rows.map(({ id }) => id),
  )
}

interface Key {
  organizationId: string
  id: string
}

const trialSelect = {
  id: true,
  deviceId: true,
  position: true,
  state: true,
  orders: true,
  orderedAt: true,
  untilAt: true,
  bootId: true,
  reason: true,
} as const

interface Trial {
  id: string
  deviceId: string
  position: number
  state: string
  orders: number
  orderedAt: Date | null
  untilAt: Date | null
  bootId: string | null
  reason: string | null
}

async function advance(db: DbTransaction, key: Key, now: Date): Promise<void> {
  await lockRow(db, 'experiment', { ...key, strength: 'update' })
  const experiment = await db.experiment.findUnique({
    where: ownRow(key, key.id),
    select: { state: true, endsAt: true, atOnce: true, bootSeconds: true },
  })
  if (!experiment || (experiment.state !== 'running' && experiment.state !== 'paused')) return
  const { organizationId, id: experimentId } = key
  const trials: Trial[] = await db.experimentTrial.findMany({
    where: { organizationId, experimentId },
    orderBy: [{ position: 'asc' }, { deviceId: 'asc' }],
    select: trialSelect,
  })
  await settle(db, { key, now, bootSeconds: experiment.bootSeconds }, trials)
  await askAgain(db, { key, now }, trials)
  if (now >= experiment.endsAt) {
    const isDone = !trials.some(isOpen)
    return end(db, key, { reason: isDone ? null : 'Its time was over before all boots.', now })
  }
  if (experiment.state === 'running') await orderNext(db, { key, now, ...experiment }, trials)
  if (trials.some(isOpen)) return
  const counted = trials.some(({ state }) => state === 'ready' || state === 'failed')
  await end(db, key, { reason: counted ? null : 'None of its boots counts: see their reasons.', now })
}

function isOpen({ state }: Trial): boolean {
  return state === 'waiting' || state === 'ordered' || state === 'booting'
}

async function end(db: DbTransaction, key: Key, { reason, now }: { reason: string | null; now: Date }): Promise<void> {
  await endExperiment(db, key, { state: 'done', reason, now })
  await db.experiment.update({ where: ownRow(key, key.id), data: { revision: { increment: 1 } } })
}

interface Step {
  key: Key
  now: Date
}

async function change(db: DbTransaction, key: Key, trial: Trial, data: Partial<Trial> | TrialEnd): Promise<void> {
  await db.experimentTrial.update({ where: ownRow(key, trial.id), data: data as object, select: { id: true } })
  Object.assign(trial, data)
}

/** Keeps what became of the boots. */
async function settle(db: DbTransaction, { key, now, bootSeconds }: Step & { bootSeconds: number }, trials: Trial[]) {
  const booting = trials.filter(({ state }) => state === 'booting')
  if (booting.length === 0) return
  const ids = booting.flatMap(({ bootId }) => bootId ?? [])
  const boots = new Map(
    (await readPlainBoots({ db, actor: { organizationId: key.organizationId } }, ids)).map((boot) => [boot.id, boot]),
  )
  for (const trial of booting) {
    const ended = settleTrial(boots.get(trial.bootId ?? '') ?? null, { reason: trial.reason, bootSeconds, now })
    if (ended) await change(db, key, trial, ended)
  }
}

/** Asks devices again that have not begun to boot, and gives them up in the end. */
async function askAgain(db: DbTransaction, { key, now }: Step, trials: Trial[]): Promise<void> {
  for (const trial of trials.filter(({ state }) => state === 'ordered')) {
    const waitedMs = now.getTime() - (trial.orderedAt?.getTime() ?? 0)
    if (waitedMs < trial.orders * orderAgainMs) continue
    if (trial.orders < ordersMax && trial.untilAt && now < trial.untilAt) {
      const asked = await askToBoot(db, { ...key, deviceId: trial.deviceId, now })
      if (asked !== 'gone') {
        await change(db, key, trial, { orders: trial.orders + 1 })
        continue
      }
    }
    await drop(db, { key, now }, trial, missedReason)
    const own = trials.filter(({ deviceId }) => deviceId === trial.deviceId)
    const latest = own.filter(({ position }) => position <= trial.position).slice(-missedMax)
    if (latest.length < missedMax || latest.some(({ reason }) => reason !== missedReason)) continue
    for (const other of own.filter(({ state }) => state === 'waiting'))
      await drop(db, { key, now }, other, 'its device does not boot')
  }
}

async function drop(db: DbTransaction, { key, now }: Step, trial: Trial, reason: string): Promise<void> {
  const data = { state: 'dropped', reason, untilAt: null, endedAt: now }
  await change(db, key, trial, data)
}

/** Gives the next settings to devices that are free, and asks them to boot: both with one state of their edges. */
async function orderNext(
  db: DbTransaction,
  { key, now, atOnce, endsAt }: Step & { atOnce: number; endsAt: Date },
  trials: Trial[],
): Promise<void> {
  const busy = new Set(
    trials.flatMap(({ state, deviceId }) => (state === 'ordered' || state === 'booting' ? deviceId : [])),
  )
  for (const trial of trials) {
    if (busy.size >= atOnce) return
    if (trial.state !== 'waiting' || busy.has(trial.deviceId)) continue
    const asked = await askToBoot(db, { ...key, deviceId: trial.deviceId, now })
    if (asked === 'gone') {
      await drop(db, { key, now }, trial, 'its device was deleted, moved or disabled')
      continue
    }
    busy.add(trial.deviceId)
    // In the middle of a boot that is none of the experiment's: it is asked at the end of that.
    if (asked === 'booting') continue
    const untilMs = Math.min(endsAt.getTime(), now.getTime() + ordersMax * orderAgainMs)
    await change(db, key, trial, { state: 'ordered', orders: 1, orderedAt: now, untilAt: new Date(untilMs) })
  }
}
