import { type DbTransaction, type JobEvents, type JobName, openJobQueue } from '@bootfarm/db'
import { dropOldAlerts } from '../alert/drop-old-alerts.ts'
import type { KeepMail } from '../alert/mail-alerts.ts'
import { watchAlerts } from '../alert/watch/watch-alerts.ts'
import { removeOldAuditEntries } from '../audit/remove-old-entries.ts'
import type { BootRetention } from '../boot/boot-retention.ts'
import { dropOldCaptures } from '../boot/drop-old-captures.ts'
import { dropOldBoots, makeBootPartitions } from '../boot/keep-boot-partitions.ts'
import { cleanStores } from '../cleaning/clean-stores.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { dropOldDifferences } from '../difference/drop-old-differences.ts'
import type { Objects } from '../difference/objects.ts'
import { advanceCaptures, dropOldDiskCaptures } from '../disk-capture/advance-captures.ts'
import { findSilentEdges } from '../edge/list-edges.ts'
import { numberAllEvents } from '../event/number-events.ts'
import { removeOldEvents } from '../event/remove-old-events.ts'
import { advanceExperiments } from '../experiment/advance-experiments.ts'
import { checkFindings } from '../finding/check-findings.ts'
import { watchBoots } from '../finding/watch-boots.ts'
import { dropOldAnswers } from '../idempotency/do-once.ts'
import { dropOldLoads } from '../load/drop-old-loads.ts'
import { deleteDueOrganizations } from '../organization/delete-due-organizations.ts'
import { keepPlacements } from '../placement/keep-placements.ts'
import { recordJob } from '../platform/record-job.ts'
import { advancePromotions } from '../promotion/advance-promotions.ts'
import { deleteOldVersions } from '../retention/delete-old-versions.ts'
import { advanceAllRollouts } from '../rollout/advance-rollouts.ts'
import type { SendMail } from '../rules/mail.ts'
import type { Telemetry } from '../rules/telemetry.ts'
import { type Tracer, traced } from '../rules/tracer.ts'
import { keepAllSchedules } from '../schedule/keep-schedules.ts'
import { resealSecrets } from '../secrets/reseal-secrets.ts'
import { dropOldAttempts } from '../session/public.ts'
import { measureSpaces } from '../space/measure-spaces.ts'
import { dropOldStoreJobs } from '../store-job/change-jobs.ts'
import { purgeOldDeletions } from '../trash/purge-deletion.ts'
import { dropOldUploads } from '../upload/drop-old-uploads.ts'
import type { Uploads } from '../upload/uploads.ts'
import { releaseDue } from '../vdisk/release-due.ts'
import { WebhookDeliveries } from '../webhook/deliver-due.ts'
import type { TargetPolicy } from '../webhook/target-guard.ts'

const minuteSeconds = 60
const hourSeconds = 3_600
const deliveryIntervalMs = 1_000

interface JobSettings {
  sendMail: SendMail
  keepMail: KeepMail
  /** The address of the dashboard: links in mails begin with it. */
  webUrl: string
  /** Delivers a mail of the queue; throws to have it tried again. Null where no mail server is set. */
  deliverMail: ((sealed: string) => Promise<void>) | null
  bootRetention: BootRetention
  webhookTargets: TargetPolicy
  uploads: Uploads
  objects: Objects
  telemetry: Telemetry
  /** Without it no traces are collected. */
  tracer: Tracer | undefined
}

export interface RunningJobs {
  /** Keeps a sealed mail for `deliverMail`; with the transaction, if there is one. */
  keepMail(sealed: string, transaction?: DbTransaction): Promise<void>
  /** Throws while they cannot run. */
  check(): Promise<void>
  /** Takes no further jobs, and waits for the running ones. */
  stop(): Promise<void>
}

type JobContext = PlatformContext & JobSettings

interface Job {
  name: JobName
  everySeconds: number
  /** Done again after a failure, or after its process was killed in the middle of it. */
  run: (context: JobContext) => Promise<unknown>
}

const jobs: Job[] = [
  { name: 'release versions', everySeconds: 10, run: releaseDue },
  { name: 'advance promotions', everySeconds: 5, run: advancePromotions },
  { name: 'advance captures', everySeconds: 5, run: advanceCaptures },
  { name: 'advance experiments', everySeconds: 3, run: advanceExperiments },
  { name: 'drop old disk captures', everySeconds: hourSeconds, run: dropOldDiskCaptures },
  { name: 'drop old store jobs', everySeconds: hourSeconds, run: dropOldStoreJobs },
  { name: 'drop old uploads', everySeconds: minuteSeconds, run: dropOldUploads },
  { name: 'keep placements', everySeconds: 10, run: keepPlacements },
  { name: 'watch boots', everySeconds: 10, run: watchBoots },
  { name: 'check findings', everySeconds: 10 * minuteSeconds, run: checkFindings },
  { name: 'delete old versions', everySeconds: 5 * minuteSeconds, run: deleteOldVersions },
  { name: 'clean stores', everySeconds: minuteSeconds, run: cleanStores },
  { name: 'measure stores', everySeconds: 10 * minuteSeconds, run: measureSpaces },
  { name: 'drop old loads', everySeconds: hourSeconds, run: dropOldLoads },
  { name: 'watch alerts', everySeconds: minuteSeconds, run: watchAlerts },
  { name: 'drop old alerts', everySeconds: hourSeconds, run: dropOldAlerts },
  { name: 'drop old differences', everySeconds: hourSeconds, run: dropOldDifferences },
  { name: 'tell silent edges', everySeconds: 10, run: findSilentEdges },
  { name: 'number events', everySeconds: 10, run: numberAllEvents },
  { name: 'drop old deliveries', everySeconds: hourSeconds, run: removeOldEvents },
  { name: 'drop old captures', everySeconds: hourSeconds, run: dropOldCaptures },
  { name: 'seal secrets', everySeconds: hourSeconds, run: resealSecrets },
  { name: 'drop old answers', everySeconds: hourSeconds, run: dropOldAnswers },
  { name: 'drop old rate limits', everySeconds: hourSeconds, run: dropOldAttempts },
  { name: 'make boot partitions', everySeconds: hourSeconds, run: makeBootPartitions },
  {
    name: 'drop old boots',
    everySeconds: hourSeconds,
    run: (context) => dropOldBoots(context, context.bootRetention),
  },
  { name: 'keep schedules', everySeconds: 20, run: keepAllSchedules },
  { name: 'advance rollouts', everySeconds: 5, run: advanceAllRollouts },
  { name: 'empty the trash', everySeconds: hourSeconds, run: purgeOldDeletions },
  { name: 'remove old audit entries', everySeconds: hourSeconds, run: removeOldAuditEntries },
  { name: 'delete organizations', everySeconds: minuteSeconds, run: deleteDueOrganizations },
]

/**
 * Runs each job once in its time, in one of the API processes that share the database; all of them deliver webhooks,
 * and one of them takes each message.
 * @param events hear of failures; a failed job is retried
 */
export async function startJobs(databaseUrl: string, context: JobContext, events: JobEvents): Promise<RunningJobs> {
  const queue = await openJobQueue(databaseUrl, events)
  for (const { name, everySeconds, run } of jobs)
    await queue.every(name, everySeconds, () =>
      traced(context.tracer, `job ${name}`, () => recordJob(context, name, () => run(context))),
    )
  if (context.deliverMail) await queue.deliverMails(context.deliverMail)
  const deliveries = new WebhookDeliveries(context, events.onError)
  const timer = setInterval(() => deliveries.fill(), deliveryIntervalMs).unref()
  return {
    keepMail: (sealed, transaction) => queue.sendMail(sealed, transaction),
    check: () => queue.check(),
    async stop() {
      clearInterval(timer)
      await Promise.all([queue.stop(), deliveries.stop()])
    },
  }
}
