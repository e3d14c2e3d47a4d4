import { createRequire } from 'node:module'
import type pg from 'pg'
import { getConstructionPlans, getMigrationPlans, PgBoss, type Db as PgBossDb } from 'pg-boss'
import { apiGroup } from './api-role.ts'
import type { DbTransaction } from './client.ts'

const schema = 'pgboss'
const schemaVersion = (createRequire(import.meta.url)('pg-boss/package.json') as { pgboss: { schema: number } }).pgboss
  .schema
/**
 * A job whose process was killed is free again when its heartbeat has been silent for so long, and the next look finds
 * that.
 */
const heartbeatSeconds = 10
const superviseIntervalSeconds = 15
const expireInSeconds = 600
const doneKeptSeconds = 7 * 86_400
const retryLimit = 3
const retryDelaySeconds = 10
const pollingIntervalSeconds = 2
const connectionsMax = 2
/** A job is requested twice in its time, and at least once a minute: the first request in a slot of that time wins. */
const askIntervalMsMax = 60_000
const stopLimitMs = 8_000

/** Mails that wait for the mail server, sealed by the API. */
const mailQueue = 'mail'
/** Links in mails are valid for an hour or longer: the tries end after about two hours. A sent mail is deleted. */
const mailOptions = {
  policy: 'standard',
  retryLimit: 16,
  retryDelay: 10,
  retryBackoff: true,
  retryDelayMax: 600,
  expireInSeconds: 120,
  heartbeatSeconds,
  retentionSeconds: 7_200,
  deleteAfterSeconds: 60,
}
/** A server that does not answer holds up no more mails than these at a time. */
const mailsAtOnceMax = 4

const queueOf = (name: JobName) => name.replaceAll(' ', '-')

/**
 * Runs as the owner during migration: pg-boss's tables in a separate schema, and a queue for each job. The API may use
 * them but create none.
 */
export async function installJobQueues(owner: pg.Client): Promise<void> {
  const version = await installedVersion(owner)
  if (version === null) await owner.query(getConstructionPlans(schema))
  else if (version < schemaVersion) await owner.query(getMigrationPlans(schema, version))
  // At most one waits or runs.
  const options = { policy: 'exclusive', retryLimit, retryDelay: retryDelaySeconds, retryBackoff: true }
  const times = { expireInSeconds, heartbeatSeconds, deleteAfterSeconds: doneKeptSeconds }
  for (const name of jobNames)
    await owner.query(`select ${schema}.create_queue($1, $2)`, [queueOf(name), { ...options, ...times }])
  await owner.query(`select ${schema}.create_queue($1, $2)`, [mailQueue, mailOptions])
  await owner.query(`
    grant usage on schema ${schema} to ${apiGroup};
    grant select, insert, update, delete on all tables in schema ${schema} to ${apiGroup};
    grant execute on all functions in schema ${schema} to ${apiGroup}`)
}

async function installedVersion(owner: pg.Client): Promise<number | null> {
  const { rows } = await owner.query<{ is_there: boolean }>(
    `select to_regclass('${schema}.version') is not null as is_there`,
  )
  if (!rows[0]?.is_there) return null
  const { rows: versions } = await owner.query<{ version: number }>(`select version from ${schema}.version`)
  return versions[0]?.version ?? null
}

/** A job that ended in this process. */
export interface DoneJob {
  job: JobName
  /** The same over its repetitions. */
  jobId: string
  durationMs: number
  /** The error; null if it succeeded. */
  error: unknown
}

export interface JobEvents {
  onDone(done: DoneJob): void
  /** Called while the database is unreachable: the queue continues when it returns. */
  onError(error: unknown): void
}

export interface JobQueue {
  /**
   * Runs `work` in each slot of so many seconds, in one of the processes that ask for it; never twice at once. Tried
   * again where it throws.
   */
  every(name: JobName, seconds: number, work: () => Promise<unknown>): Promise<void>
  /**
   * Keeps a sealed mail until `deliverMails` has taken it, in this process or another one.
   * @param transaction the mail is kept if this is committed, and only then
   */
  sendMail(sealed: string, transaction?: DbTransaction): Promise<void>
  /** Delivers kept mails; one whose `deliver` throws is tried again later, with growing pauses. */
  deliverMails(deliver: (sealed: string) => Promise<void>): Promise<void>
  /** Throws while pg-boss reaches no database, or has stopped. */
  check(): Promise<void>
  /** Takes no further jobs, and waits for those that run here. */
  stop(): Promise<void>
}

async function startBoss(url: string, onError: JobEvents['onError']): Promise<PgBoss> {
  const boss = new PgBoss({
    connectionString: url,
    schema,
    max: connectionsMax,
    application_name: 'bootfarm jobs',
    // Everything that needs the owner is done during migration.
    migrate: false,
    createSchema: false,
    reindex: false,
    schedule: false,
    superviseIntervalSeconds,
  })
  boss.on('error', onError)
  try {
    await boss.start()
  } catch (error) {
    await boss.stop({ graceful: false })
    if (!/not installed|requires migrations/.test(String(error))) throw error
    throw new Error('The database has no job queues of this release: run `migrate` first.', { cause: error })
  }
  return boss
}

export async function openJobQueue(url: string, { onDone, onError }: JobEvents): Promise<JobQueue> {
  const boss = await startBoss(url, onError)
  const timers: NodeJS.Timeout[] = []
  return {
    async every(name, seconds, work) {
      const queue = queueOf(name)
      const ask = () => boss.send(queue, null, { singletonSeconds: seconds })
      await ask()
      // One at a time.
      await boss.work(queue, { pollingIntervalSeconds }, async ([job]) => {
        const begin = performance.now()
        const done = (error: unknown) =>
          onDone({
            job: name,
            jobId: job?.id ?? '',
            durationMs: Math.round(performance.now() - begin),
            error,
          })
        try {
          await work()
        } catch (error) {
          done(error)
          throw error
        }
        done(null)
      })
      const askIntervalMs = Math.min((seconds * 1000) / 2, askIntervalMsMax)
      timers.push(setInterval(() => ask().catch(onError), askIntervalMs).unref())
    },
    async sendMail(sealed, transaction) {
      await boss.send(mailQueue, { sealed }, transaction ? { db: statementsOf(transaction) } : {})
    },
    async deliverMails(deliver) {
      const options = { pollingIntervalSeconds, localConcurrency: mailsAtOnceMax }
      await boss.work<{ sealed: string }>(mailQueue, options, async ([job]) => {
        if (job) await deliver(job.data.sealed)
      })
    },
    async check() {
      if (!(await boss.isInstalled())) throw new Error('the job queues are not installed')
    },
    async stop() {
      for (const timer of timers) clearInterval(timer)
      await boss.stop({ graceful: true, timeout: stopLimitMs })
    },
  }
}

/** pg-boss's statements on the connection of a transaction. */
function statementsOf(transaction: DbTransaction): PgBossDb {
  return {
    executeSql: async (text, values = []) => ({ rows: await transaction.$queryRawUnsafe(text, ...values) }),
  }
}

/** Jobs that run automatically, in one API process at a time; `migrate` creates a queue for each. */
export const jobNames = [
  'drop old captures',
  'drop old uploads',
  'keep placements',
  'watch boots',
  'check findings',
  'delete old versions',
  'clean stores',
  'measure stores',
  'drop old loads',
  'watch alerts',
  'drop old alerts',
  'drop old differences',
  'make boot partitions',
  'drop old boots',
  'keep schedules',
  'advance rollouts',
  'drop old answers',
  'empty the trash',
  'tell silent edges',
  'drop old deliveries',
  'delete organizations',
  'remove old audit entries',
  'release versions',
  'advance promotions',
  'advance captures',
  'advance experiments',
  'drop old disk captures',
  'drop old store jobs',
  'drop old rate limits',
  'seal secrets',
  'number events',
] as const

export type JobName = (typeof jobNames)[number]
