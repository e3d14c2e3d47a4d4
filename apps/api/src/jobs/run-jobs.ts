import type { BootRetention } from '../domain/boot-retention.ts'
import { dropOldCaptures } from '../services/capture/drop-old-captures.ts'
import { dropOldAnswers } from '../services/idempotency/drop-old-answers.ts'
import { dropOldBoots, makeBootPartitions } from '../services/retention/keep-boot-partitions.ts'
import { keepAllSchedules } from '../services/schedule/keep-schedules.ts'
import type { PlatformContext } from '../services/service-context.ts'
import { purgeOldDeletions } from '../services/trash/purge-deletion.ts'
import { deliverDue } from '../services/webhook/deliver-due.ts'
import { dropOldDeliveries } from '../services/webhook/drop-old-deliveries.ts'
import type { TargetPolicy } from '../services/webhook/target-guard.ts'
import { tellSilentEdges } from '../services/webhook/tell-silent-edges.ts'

const hourMs = 3_600_000

interface JobSettings {
  bootRetention: BootRetention
  webhookTargets: TargetPolicy
}

interface Job {
  name: string
  everyMs: number
  /** Done twice it does no harm: several API processes run it, each on its own. */
  run: (context: PlatformContext) => Promise<unknown>
}

const jobsOf = ({ bootRetention: retention, webhookTargets }: JobSettings): Job[] => [
  { name: 'deliver webhooks', everyMs: 1_000, run: (context) => deliverDue({ ...context, webhookTargets }) },
  { name: 'tell silent edges', everyMs: 10_000, run: tellSilentEdges },
  { name: 'drop old deliveries', everyMs: hourMs, run: dropOldDeliveries },
  { name: 'drop old captures', everyMs: hourMs, run: dropOldCaptures },
  { name: 'drop old answers', everyMs: hourMs, run: dropOldAnswers },
  { name: 'make boot partitions', everyMs: hourMs, run: makeBootPartitions },
  { name: 'drop old boots', everyMs: hourMs, run: (context) => dropOldBoots(context, retention) },
  { name: 'keep schedules', everyMs: 20_000, run: keepAllSchedules },
  { name: 'empty the trash', everyMs: hourMs, run: purgeOldDeletions },
]

/**
 * Runs each job now and whenever its time is over, never twice at once.
 * @param onError hears of one that failed; it is tried again at its next time
 * @returns stops them, and waits for those that run
 */
export function startJobs(
  context: PlatformContext & JobSettings,
  onError: (name: string, error: unknown) => void,
): () => Promise<void> {
  const running = new Map<string, Promise<void>>()
  const start = ({ name, run }: Job) => {
    if (running.has(name)) return
    const ended = run(context)
      .catch((error: unknown) => onError(name, error))
      .then(() => void running.delete(name))
    running.set(name, ended)
  }
  const timers = jobsOf(context).map((job) => {
    start(job)
    return setInterval(() => start(job), job.everyMs).unref()
  })
  return async () => {
    for (const timer of timers) clearInterval(timer)
    await Promise.all(running.values())
  }
}
