import { type JobEvents, type JobName, openJobQueue } from '@bootfarm/db'
import type { BootRetention } from '../domain/boot-retention.ts'
import type { SendMail } from '../domain/mail.ts'
import type { Telemetry } from '../domain/telemetry.ts'
import { type Tracer, traced } from '../domain/tracer.ts'
import { removeOldAuditEntries } from '../services/audit/remove-old-entries.ts'
import { dropOldCaptures } from '../services/capture/drop-old-captures.ts'
import { dropOldAnswers } from '../services/idempotency/drop-old-answers.ts'
import { deleteDueOrganizations } from '../services/organization/delete-due-organizations.ts'
import { recordJob } from '../services/platform/record-job.ts'
import { dropOldBoots, makeBootPartitions } from '../services/retention/keep-boot-partitions.ts'
import { keepAllSchedules } from '../services/schedule/keep-schedules.ts'
import type { PlatformContext } from '../services/service-context.ts'
import { dropOldStoreJobs } from '../services/store-job/drop-old-jobs.ts'
import { purgeOldDeletions } from '../services/trash/purge-deletion.ts'
import { releaseDue } from '../services/version/release-due.ts'
import { deliverDue } from '../services/webhook/deliver-due.ts'
import { dropOldDeliveries } from '../services/webhook/drop-old-deliveries.ts'
import type { TargetPolicy } from '../services/webhook/target-guard.ts'
import { tellSilentEdges } from '../services/webhook/tell-silent-edges.ts'

const minuteSeconds = 60
const hourSeconds = 3_600
const deliveryIntervalMs = 1_000

interface JobSettings {
  sendMail: SendMail
  bootRetention: BootRetention
  webhookTargets: TargetPolicy
  telemetry: Telemetry
  /** Nobody collects traces where it is left out. */
  tracer: Tracer | undefined
}

export interface RunningJobs {
  /** Throws while they cannot run. */
  check(): Promise<void>
  /** Takes no more, and waits for those that run. */
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
  { name: 'drop old store jobs', everySeconds: hourSeconds, run: dropOldStoreJobs },
  { name: 'tell silent edges', everySeconds: 10, run: tellSilentEdges },
  { name: 'drop old deliveries', everySeconds: hourSeconds, run: dropOldDeliveries },
  { name: 'drop old captures', everySeconds: hourSeconds, run: dropOldCaptures },
  { name: 'drop old answers', everySeconds: hourSeconds, run: dropOldAnswers },
  { name: 'make boot partitions', everySeconds: hourSeconds, run: makeBootPartitions },
  {
    name: 'drop old boots',
    everySeconds: hourSeconds,
    run: (context) => dropOldBoots(context, context.bootRetention),
  },
  { name: 'keep schedules', everySeconds: 20, run: keepAllSchedules },
  { name: 'empty the trash', everySeconds: hourSeconds, run: purgeOldDeletions },
  { name: 'remove old audit entries', everySeconds: hourSeconds, run: removeOldAuditEntries },
  { name: 'delete organizations', everySeconds: minuteSeconds, run: deleteDueOrganizations },
]

/**
 * Runs each job once in its time, in one of the API processes that share the database; all of them deliver webhooks, each
 * message taken by one.
 * @param events hear of what failed; it is tried again
 */
export async function startJobs(databaseUrl: string, context: JobContext, events: JobEvents): Promise<RunningJobs> {
  const queue = await openJobQueue(databaseUrl, events)
  for (const { name, everySeconds, run } of jobs)
    await queue.every(name, everySeconds, () =>
      traced(context.tracer, `job ${name}`, () => recordJob(context, name, () => run(context))),
    )
  let delivering: Promise<void> | undefined
  const timer = setInterval(() => {
    delivering ??= deliverDue(context, events.onError)
      .catch(events.onError)
      .finally(() => {
        delivering = undefined
      })
  }, deliveryIntervalMs).unref()
  return {
    check: () => queue.check(),
    async stop() {
      clearInterval(timer)
      await Promise.all([queue.stop(), delivering])
    },
  }
}
