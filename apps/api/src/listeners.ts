import { keepAccountEvent, keepChanges } from './audit/keep-changes.ts'
import type { Listeners } from './events/event-bus.ts'
import { takeTrialBoots } from './experiment/public.ts'
import { keepPlatformEvent } from './platform/keep-platform-event.ts'
import {
  publishAlerts,
  publishEndedCapture,
  publishEndedRuns,
  publishFailedBoots,
  publishFillingCaches,
  publishFillingStores,
  publishFinding,
  publishKeyAlarms,
  publishLostVersions,
  publishPausedRollout,
  publishPromotion,
  publishSilentEdges,
} from './webhook/publish-events.ts'

/** The listeners of each event, in the order in which they run. */
export const listeners: Listeners = {
  changesRecorded: [keepChanges],
  accountEventRecorded: [keepAccountEvent],
  platformEventRecorded: [keepPlatformEvent],
  versionPromoted: [publishPromotion],
  bootsReported: [takeTrialBoots, publishFailedBoots, publishFillingCaches],
  versionsLost: [publishLostVersions],
  keyAlarmsRaised: [publishKeyAlarms],
  runsEnded: [publishEndedRuns],
  rolloutPaused: [publishPausedRollout],
  storesFill: [publishFillingStores],
  captureEnded: [publishEndedCapture],
  alertsChanged: [publishAlerts],
  findingChanged: [publishFinding],
  edgesFellSilent: [publishSilentEdges],
}
