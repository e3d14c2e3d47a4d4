import type { BootReport } from '@bootfarm/proto/uplink'
import type { AuthenticatedEdge, DbOrTransaction, PlatformContext, ServiceContext } from '../context/service-context.ts'
import type { Fields } from '../rules/audit-change.ts'
import type { Clock } from '../rules/clock.ts'
import type { DeviceKeyLabel } from '../rules/device/device-key.ts'
import type { Place } from '../rules/place.ts'

/**
 * The events that nouns emit, by name. An event carries the transaction in which it happened, and its listeners write
 * in that transaction: both are kept, or neither. An account belongs to no organization, so its event carries the
 * database. Only listeners.ts imports listeners.
 */
export interface Events {
  changesRecorded: RecordedChanges
  accountEventRecorded: { context: PlatformContext; event: AccountEvent }
  platformEventRecorded: { db: DbOrTransaction; clock: Clock; event: PlatformEvent }
  versionPromoted: PromotedVersion
  bootsReported: { db: DbOrTransaction; now: Date; edge: AuthenticatedEdge; boots: BootReport[] }
  versionsLost: { db: DbOrTransaction; now: Date; edge: AuthenticatedEdge; versions: LostVersion[] }
  keyAlarmsRaised: { db: DbOrTransaction; now: Date; edge: AuthenticatedEdge; alarms: KeyAlarm[] }
  runsEnded: { db: DbOrTransaction; now: Date; organizationId: string; runs: EndedRun[] }
  rolloutPaused: { db: DbOrTransaction; now: Date; organizationId: string; rollout: PausedRollout }
  storesFill: { db: DbOrTransaction; now: Date; organizationId: string; edges: FillingEdge[] }
  captureEnded: { db: DbOrTransaction; now: Date; organizationId: string; capture: EndedCapture; place: Place }
  alertsChanged: { db: DbOrTransaction; now: Date; organizationId: string; alerts: ChangedAlert[] }
  findingChanged: { db: DbOrTransaction; now: Date; finding: ChangedFinding }
  edgesFellSilent: { db: DbOrTransaction; now: Date; organizationId: string; edges: SilentEdge[] }
}

export type Listeners = { [Name in keyof Events]: ((event: Events[Name]) => Promise<void>)[] }

let listeners: Listeners | null = null

/** Each program calls this once at its start, before it emits anything. */
export function setListeners(all: Listeners): void {
  listeners = all
}

/**
 * Calls the listeners one after the other. An error in one of them ends the transaction of the event. Throws if the
 * program has set no listeners, so that nothing happens unrecorded.
 */
export async function emit<Name extends keyof Events>(name: Name, event: Events[Name]): Promise<void> {
  if (!listeners) throw new Error(`${name} has no listeners: call setListeners(listeners) at the start of the program`)
  for (const listener of listeners[name]) await listener(event)
}

export interface Change {
  /** A name of `placeKinds`, or another noun: member, api_key, webhook. */
  kind: string
  id: string | null
  name: string | null
  /** The object's place; the place of the procedure's object if it is left out. */
  place?: Place
  /** The object's fields, or those that may have changed; null where there was nothing. */
  before: Fields | null
  /** Null where nothing is left. */
  after: Fields | null
}

/** An actor that is not signed in: an edge, or a job of the control plane. */
export interface Doer {
  organizationId: string
  kind: 'edge' | 'system'
  /** The edge's id. */
  id: string | null
  name: string
  /** The edge's address at its request. */
  address?: string | null
}

export interface RecordedChanges {
  db: DbOrTransaction
  now: Date
  doer: {
    organizationId: string
    kind: Doer['kind'] | ServiceContext['actor']['kind']
    id: string | null
    name: string
    address?: string | null
    requestId?: string | null
  }
  changes: (Change & { action: string; place: Place })[]
}

export interface AccountEvent {
  userId: string
  /** E.g. `account.signIn`. */
  action: string
  /** False where it is not known to be the person: a sign-in that failed. */
  isByPerson: boolean
  address: string | null
  before?: Fields | null
  after?: Fields | null
}

export interface PlatformEvent {
  /** E.g. `organization.suspend`. */
  action: string
  /** Null for automatic changes. */
  actorUserId: string | null
  organizationId: string | null
  /** Only ids, figures and instants: it remains when the organization is gone. */
  before: Record<string, string | number | boolean | null> | null
  after: Record<string, string | number | boolean | null> | null
}

export interface PromotedVersion {
  db: DbOrTransaction
  now: Date
  organizationId: string
  farmId: string
  vdiskId: string
  vdiskName: string
  version: { id: string; number: number }
  /** The version that the vDisk's devices booted before; null if they booted none. */
  previous: { id: string; number: number } | null
}

/** A version that devices boot, which an edge had and has no longer. */
export interface LostVersion {
  id: string
  number: number
  vdiskId: string
  vdiskName: string
  /** How people see it: `default`, `override`, `pending` or `test`. */
  access: string
}

/** A device has not proved the key that is known of it. */
export interface KeyAlarm {
  deviceId: string
  collectionId: string
  deviceName: string
  mac: string
  label: DeviceKeyLabel | null
  /** Fingerprints: of the key that is known, and of the one that it proved instead. */
  key: string | null
  claimed: string | null
  claimBootId: string | null
  revision: number
}

export interface EndedRun {
  id: string
  state: string
  reason: string | null
  instant: Date
  started_at: Date | null
  by_hand: boolean
  schedule_id: string
  name: string
  farm_id: string
  /** Null: all sites of the farm. */
  site_id: string | null
  device_count: number
  woken_count: number
  edge_count: number
  /** Edges that have not reported the end of the run. */
  edges_away_count: number
  ready_count: number
  failed_count: number
  not_seen_count: number
  skipped_count: number
}

/** A rollout that paused by itself because of an edge. */
export interface PausedRollout {
  id: string
  farmId: string
  version: string
  /** 1 for the canary. */
  wave: number
  reason: string
  cause: string | null
  edgeId: string
  edgeName: string | null
  /** Another one each time. */
  revision: number
}

/** An edge whose store becomes full. */
export interface FillingEdge {
  id: string
  name: string
  farmId: string
  siteId: string
  siteName: string
  reason: 'full' | 'filling' | 'next_version'
  /** When nothing more fits; null: unknown. */
  fullAt: Date | null
  freeBytes: number
  totalBytes: number
  /** Besides what the edge keeps free. */
  usableBytes: number
  /** What versions need that it fetches. */
  pendingBytes: number
}

/** A capture of a device's disk that has made a version, or was undone. */
export interface EndedCapture {
  id: string
  deviceId: string
  deviceName: string
  state: 'done' | 'failed' | 'cancelled'
  reason: string | null
  /** Null: it was deleted. */
  vdisk: { id: string; name: string } | null
  /** Null: none was made. */
  version: { id: string; number: number } | null
}

/** An alert that has opened or closed. */
export interface ChangedAlert {
  isOpen: boolean
  place: Place
  /** What messages say of it: the fields of the API. No text of a device is among them. */
  facts: {
    alertId: string
    kind: string
    title: string
    siteId: string
    siteName: string
    collectionId: string | null
    collectionName: string | null
    cause: string | null
    bootCount: number
    firstAt: string
    lastAt: string
    /** The path of the dashboard's page with its boots. */
    boots: string
  }
}

/** A finding that was opened or closed. */
export interface ChangedFinding {
  organizationId: string
  id: string
  siteId: string
  vdiskId: string
  vdiskName: string
  kind: 'slower' | 'failing'
  factor: string
  value: string
  valueName: string
  sentence: string
  since: Date
  state: 'open' | 'closed'
}

export interface SilentEdge {
  id: string
  name: string
  heartbeat_at: Date
  farm_id: string
  site_id: string
  site_name: string
}
