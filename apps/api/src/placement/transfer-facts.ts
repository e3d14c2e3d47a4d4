import type { PlacementRule } from './placement-rule.ts'

/** What a plan of one vDisk's transfers is made of. */
export interface TransferFacts {
  now: Date
  /** Sealed ones in stores, the lowest number first. */
  versions: FactVersion[]
  sites: FactSite[]
  /** Of these sites, without revoked ones. */
  edges: FactEdge[]
  copies: FactCopy[]
  differences: FactDifference[]
  /** Packs and fetches of the vDisk that have not ended. */
  jobs: FactJob[]
  setbacks: FactSetback[]
  /** The control plane has an object store. */
  hasObjects: boolean
  /** Transfers that may still start in the organization. */
  turns: number
}

export interface FactVersion {
  id: string
  number: number
  parentVersionId: string | null
  /** Devices boot it by default, or will when edges hold it: it comes before the others. */
  isFirst: boolean
}

export interface FactSite {
  id: string
  timeZone: string
  rule: PlacementRule
}

export interface FactEdge {
  id: string
  siteId: string
  isOnline: boolean
  hasStore: boolean
  packs: boolean
  fetches: boolean
  /** Packs and fetches of all vDisks that it has yet to end. */
  transfers: number
  /** Jobs of all kinds. */
  jobs: number
  /** Free in its store, besides what its fetches still need; null: not reported. */
  freeBytes: number | null
}

export interface FactCopy {
  versionId: string
  edgeId: string
  /** `arrived`: the job that brought or made it is done, and no inventory has come since. */
  state: 'present' | 'damaged' | 'arrived'
}

export interface FactDifference {
  id: string
  versionId: string
  baseVersionId: string | null
  sizeBytes: bigint | null
  listSha256: string | null
  isPacked: boolean
  isStored: boolean
  /** Edges that keep it. */
  edgeIds: string[]
}

export interface FactJob {
  id: string
  kind: 'pack' | 'fetch'
  edgeId: string
  versionId: string
  baseVersionId: string | null
  differenceId: string | null
  fromControlPlane: boolean
  rateBytesPerSecond: number | null
  progressBytes: number
  totalBytes: number
}

/** Failed or cancelled jobs of one kind, of one version at one edge. */
export interface FactSetback {
  kind: 'pack' | 'fetch'
  edgeId: string
  versionId: string
  failures: number
  /** A person cancelled the last one. */
  isCancelled: boolean
  lastAt: Date
  /** In the edge's words. */
  message: string | null
}

/** How an edge stands to a version that it holds or is to hold. */
export interface Cell {
  versionId: string
  edgeId: string
  state: 'holds' | 'damaged' | 'fetching' | 'lacks'
  /** Why nothing is fetched now; null with other states, and if the fetch has just been ordered. */
  waitsFor: WaitReason | null
  /** When it is tried again, after a failure or a cancellation. */
  retryAt: Date | null
  /** Why the last try failed, in the edge's words, or how much space it lacks. */
  message: string | null
  progressBytes: number
  totalBytes: number
}

export const waitReasons = [
  'edge_offline',
  'edge_without_store',
  'edge_release',
  'holder_offline',
  'no_holder',
  'no_object_store',
  'packing',
  'base',
  'window',
  'space',
  'failed',
  'cancelled',
  'turn',
] as const
export type WaitReason = (typeof waitReasons)[number]

export interface PackOrder {
  edgeId: string
  versionId: string
  baseVersionId: string | null
  /** Null: a new one. */
  differenceId: string | null
  toControlPlane: boolean
  rateBytesPerSecond: number | null
}

export interface FetchOrder {
  edgeId: string
  versionId: string
  difference: FactDifference
  sourceEdgeIds: string[]
  fromControlPlane: boolean
  rateBytesPerSecond: number | null
}

export interface TransferPlan {
  packs: PackOrder[]
  fetches: FetchOrder[]
  /** Ids of jobs that nobody needs any more. */
  cancelled: string[]
  /** Jobs whose limit has changed. */
  rates: { jobId: string; rateBytesPerSecond: number | null }[]
  /** Versions that an edge lacks which is to hold them. */
  lacking: Set<string>
  /** Of all edges that hold a version or are to hold it. */
  cells: Cell[]
}
