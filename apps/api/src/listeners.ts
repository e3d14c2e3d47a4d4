import { keepAccountEvent } from './audit/keep-account-event.ts'
import { keepChanges } from './audit/keep-changes.ts'
import type { Listeners } from './events/event-bus.ts'
import { keepPlatformEvent } from './platform/keep-platform-event.ts'
import { publishEndedRuns } from './webhook/publish-ended-runs.ts'
import { publishFailedBoots } from './webhook/publish-failed-boots.ts'
import { publishFillingCaches } from './webhook/publish-filling-caches.ts'
import { publishPromotion } from './webhook/publish-promotion.ts'
import { publishSilentEdges } from './webhook/publish-silent-edges.ts'

/** The listeners of each event, in the order in which they run. */
export const listeners: Listeners = {
  changesRecorded: [keepChanges],
  accountEventRecorded: [keepAccountEvent],
  platformEventRecorded: [keepPlatformEvent],
  versionPromoted: [publishPromotion],
  bootsReported: [publishFailedBoots, publishFillingCaches],
  runsEnded: [publishEndedRuns],
  edgesFellSilent: [publishSilentEdges],
}
