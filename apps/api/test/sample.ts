import type { SpareObjects } from './spare-objects.ts'
import type { TestTenant } from './test-tenant.ts'

/** The procedures that need a vDisk in a specific state. */
export const versionKinds = [
  'startMaintenance',
  'seal',
  'discardMaintenance',
  'promote',
  'cancelRelease',
  'cancelPromotion',
  'revert',
  'override',
  'clearOverride',
  'merge',
  'import',
  'writeCache',
  'clearBootProfile',
  'adopt',
  'upload',
  'placement',
  'retention',
] as const
export type VersionSample = (typeof versionKinds)[number]

/** vDisks of one version each, as its procedure takes it: each call another one. */
export interface VersionSpares {
  vdisks: Record<VersionSample, { vdiskId: string; versionId: string }[]>
  /** A maintenance device for each vDisk whose maintenance begins, by vDisk. */
  writers: Record<string, string>
  /** An image at the edge for each vDisk that takes one, by vDisk. */
  images: Record<string, string>
  jobIds: string[]
  /** Devices with images of their own. */
  layeredIds: string[]
  /** Devices whose writes were kept by an edge that is gone. */
  homedIds: string[]
  /** Devices whose disk can be captured, whose capture waits, and whose capture asks for the disk. */
  captures: Record<'start' | 'cancel' | 'answer', string[]>
}

/** Each call of a decision takes another device, or another collection. */
export interface KeySpares {
  /** Devices whose key waits for approval. */
  waitingIds: string[]
  /** Collections of one such device each. */
  collectionIds: string[]
}

/** For what starts or changes a rollout: each call another one. */
export interface RolloutSpares {
  /** Sites with one edge each. */
  siteIds: string[]
  /** Rollouts of two waves without edges, the first of which has started. */
  runningIds: string[]
  pausedIds: string[]
}

/** For what changes a finding: each call another one. */
export interface FindingSpares {
  openIds: string[]
  mutedIds: string[]
}

/** For what changes an experiment, or starts one: each call another one. */
export interface ExperimentSpares {
  runningIds: string[]
  pausedIds: string[]
  doneIds: string[]
  /** Devices that are in none. */
  deviceIds: string[]
}

export type SampleTenant = TestTenant & {
  organizationName: string
  edgeId: string
  spareEdgeId: string
  bootId: string
  auditEntryId: string
  /** Of a device of the site. */
  eventId: string
  /** Of the collection. */
  alertId: string
  /** An unregistered machine of the site. */
  discoveredId: string
  apiKeyId: string
  /** Each with one delivery of the same id; for what changes one or takes it away. */
  spareWebhookIds: string[]
  /** For what changes a schedule or takes it away. */
  spareScheduleIds: string[]
  runId: string
  /** For what changes a menu or takes it away: each call another one. */
  spareMenuIds: string[]
  spares: SpareObjects
  versionSpares: VersionSpares
  keySpares: KeySpares
  rolloutSpares: RolloutSpares
  findingSpares: FindingSpares
  experimentSpares: ExperimentSpares
  /** Members with two roles, one of them granted by an id that is theirs; each call another one. */
  spareUserIds: string[]
  spareInvitationIds: string[]
  /** Service accounts with a role of the site; each call takes another one. */
  spareServiceIds: string[]
  /** A key of the first of them. */
  serviceKeyId: string
}

/**
 * The call of a procedure in the authorisation matrix: the name of its id, if it takes one, and an id of the tenant.
 */
export interface Sample {
  idName?: string
  /** The rest of the input. */
  input?: object | ((tenant: SampleTenant, id: string) => object)
  ownId?: (tenant: SampleTenant) => string
  /** It ends the caller's own membership: each call is another person's. */
  isLast?: true
}
