import type { Events } from '../events/event-bus.ts'
import { publishEvents } from './publish-event.ts'

/** wave.done, of runs of schedules that have ended. */
export async function publishEndedRuns({ db, now, organizationId, runs }: Events['runsEnded']): Promise<void> {
  await publishEvents(
    db,
    now,
    runs.map((run) => ({
      organizationId,
      type: 'wave.done',
      subject: run.id,
      data: {
        scheduleId: run.schedule_id,
        scheduleName: run.name,
        runId: run.id,
        farmId: run.farm_id,
        siteId: run.site_id,
        byHand: run.by_hand,
        instant: run.instant.toISOString(),
        startedAt: run.started_at?.toISOString() ?? null,
        state: run.state,
        reason: run.reason,
        devices: {
          all: run.device_count,
          woken: run.woken_count,
          booted: run.ready_count,
          failed: run.failed_count,
          notSeen: run.not_seen_count,
          skipped: run.skipped_count,
        },
      },
    })),
  )
}
