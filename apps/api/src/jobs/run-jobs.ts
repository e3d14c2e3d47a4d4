import type { BootRetention } from '../domain/boot-retention.ts'
import { dropOldCaptures } from '../services/capture/drop-old-captures.ts'
import { dropOldAnswers } from '../services/idempotency/drop-old-answers.ts'
import { dropOldBoots, makeBootPartitions } from '../services/retention/keep-boot-partitions.ts'
import { keepAllSchedules } from '../services/schedule/keep-schedules.ts'
import type { PlatformContext } from '../services/service-context.ts'
import { purgeOldDeletions } from '../services/trash/purge-deletion.ts'

const hourMs = 3_600_000

interface Job {
  name: string
  everyMs: number
  /** Done twice it does no harm: several API processes run it, each on its own. */
  run: (context: PlatformContext) => Promise<unknown>
}

const jobsOf = (retention: BootRetention): Job[] => [
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
  context: PlatformContext & { bootRetention: BootRetention },
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
  const timers = jobsOf(context.bootRetention).map((job) => {
    start(job)
    return setInterval(() => start(job), job.everyMs).unref()
  })
  return async () => {
    for (const timer of timers) clearInterval(timer)
    await Promise.all(running.values())
  }
}
