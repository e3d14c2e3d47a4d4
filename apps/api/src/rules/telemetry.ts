import type { BootReport } from '@bootfarm/proto/uplink'

/** Describes an answered request, or one whose caller left. */
export interface AnsweredRequest {
  method: string
  /** The route's template, e.g. `/api/v1/devices/:deviceId`; `none` where no route fits. */
  route: string
  /** 499 where the caller left before the answer, as nginx has it. */
  status: number
  durationMs: number
}

export interface EndedProcedure {
  /** The router's name, e.g. `device.list`; never a caller's text. */
  path: string
  /** `ok`, or a code of the error table; `invalid` where the input was refused. */
  outcome: string
  durationMs: number
}

export interface EndedJob {
  job: string
  durationMs: number
  error: unknown
}

/** Describes a batch whose transaction is committed. */
export interface AppliedReports {
  /** Reports that were news, by their type; all zero where the batch was applied before. */
  counts: Map<string, number>
  /** Records that the edge declared lost, or that cannot be read. */
  lostCount: number
  /** Boots whose outcome became known by it. */
  endedBoots: EndedBoot[]
}

export interface EndedBoot {
  organizationId: string
  siteId: string
  edgeId: string
  startedAt: Date
  boot: BootReport
}

/** The events that the API reports to metrics and traces. No call throws or waits. */
export interface Telemetry {
  requestAnswered(answered: AnsweredRequest): void
  procedureEnded(ended: EndedProcedure): void
  reportsApplied(applied: AppliedReports): void
  reportsRefused(): void
  /** An edge has taken a desired state, so long after that was signed. */
  stateAcknowledged(afterMs: number): void
  jobEnded(ended: EndedJob): void
  deliveryTried(isTaken: boolean): void
  mailSent(isSent: boolean): void
  /** Refused since too many came from the same: a key, a person, an account whose requests wait, or an address. */
  rateLimited(kind: 'api_key' | 'person' | 'turns' | 'sign_in'): void
  /** A turn at the event loop has started after so long: docs/decisions/0056-turns-at-the-event-loop.md. */
  turnStarted(kind: 'upload' | 'large' | 'request' | 'call', waitedMs: number): void
}

export const noTelemetry: Telemetry = {
  requestAnswered() {},
  procedureEnded() {},
  reportsApplied() {},
  reportsRefused() {},
  stateAcknowledged() {},
  jobEnded() {},
  deliveryTried() {},
  mailSent() {},
  rateLimited() {},
  turnStarted() {},
}

/** Returns a telemetry that calls each of them. */
export function tellAll(listeners: Telemetry[]): Telemetry {
  return {
    requestAnswered: (answered) => listeners.forEach((each) => void each.requestAnswered(answered)),
    procedureEnded: (ended) => listeners.forEach((each) => void each.procedureEnded(ended)),
    reportsApplied: (applied) => listeners.forEach((each) => void each.reportsApplied(applied)),
    reportsRefused: () => listeners.forEach((each) => void each.reportsRefused()),
    stateAcknowledged: (afterMs) => listeners.forEach((each) => void each.stateAcknowledged(afterMs)),
    jobEnded: (ended) => listeners.forEach((each) => void each.jobEnded(ended)),
    deliveryTried: (isTaken) => listeners.forEach((each) => void each.deliveryTried(isTaken)),
    mailSent: (isSent) => listeners.forEach((each) => void each.mailSent(isSent)),
    rateLimited: (kind) => listeners.forEach((each) => void each.rateLimited(kind)),
    turnStarted: (kind, waitedMs) => listeners.forEach((each) => void each.turnStarted(kind, waitedMs)),
  }
}
