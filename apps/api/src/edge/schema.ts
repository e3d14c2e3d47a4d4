import { bootProgram, edgeInterface, edgeMachine, releaseVersion, siteEdgesMax } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { ipv4Network } from '../rules/ipv4-network.ts'
import { pageInput, pageOf, searchInput, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

const statePair = z.object({ incarnation: count, counter: count })

const subnetsMax = 32
/** `siteEdges` in packages/proto/src/uplink-state.ts explains the fields. */
export const edgeShareView = z.object({
  revision: seenRevision,
  weight: count.max(100),
  subnets: z.array(z.string()),
  draining: z.boolean(),
})

export const edgeListInput = z.object({
  ...pageInput,
  siteId: uuid.optional(),
  ...searchInput,
})
export const edgeSummary = z.object({
  id: uuid,
  name: z.string(),
  siteId: uuid,
  siteName: z.string(),
  online: z.boolean(),
  agentVersion: z.string(),
  arch: z.string(),
  enrolledAt: instant,
  revokedAt: instant.nullable(),
  /** Null until the first heartbeat. */
  heartbeatAt: instant.nullable(),
  devicesBooting: count,
  reportBacklog: count,
  /** What is wrong with its disks, words such as `store_low_space`; empty if nothing is. */
  problems: z.array(z.string()),
  ...edgeShareView.shape,
})
export type EdgeSummary = z.infer<typeof edgeSummary>
export const edgePage = pageOf(edgeSummary)

export const edgeGetInput = z.object({ edgeId: uuid })
export const edgeDetail = edgeSummary.extend({
  bootEpoch: count,
  uptimeMs: count.nullable(),
  /** The edge's clock minus the API's at the last heartbeat. */
  clockOffsetMs: z.number().int().nullable(),
  /** Packets and requests that the edge ignored since its start, most first. */
  ignored: z.array(z.object({ reason: z.string(), count })),
  /** Null until an edge has asked for its state. */
  desiredState: statePair.nullable(),
  appliedState: statePair.nullable(),
  /** Records that the edge declared lost. */
  reportsLost: count,
  /** Which, newest first; at most the last 20 stretches. */
  reportGaps: z.array(
    z.object({
      count,
      /** By the edge's clock; null if unknown. */
      fromAt: instant.nullable(),
      untilAt: instant.nullable(),
      reason: z.string(),
      declaredAt: instant,
    }),
  ),
  /** The address at which devices and other edges of the site reach it; null if not reported. */
  address: z.string().nullable(),
  interfaces: z.array(
    edgeInterface.extend({
      /** Interfaces of the site's other edges in the same network whose MTU is another. */
      otherMtus: z.array(z.object({ edgeId: uuid, edgeName: z.string(), mtu: count })),
    }),
  ),
  /** The machine of the edge; null if not reported. */
  machine: edgeMachine.nullable(),
  /** When its key was last replaced; null if it has its first. */
  keyRotatedAt: instant.nullable(),
  /** Another key was ordered, and the edge has not reported one. */
  keyOrdered: z.boolean(),
  /** The version of the uplink for which its requests are refused; null if they are not. */
  refused: z.object({ code: z.enum(['edge_too_old', 'edge_too_new']), version: count, at: instant }).nullable(),
  /** Why it has not applied its desired state, a word such as `too_large`; null if it has. */
  stateRefused: z.string().nullable(),
  /** The release that it is to run, and what became of that; null if none is ordered. */
  release: z
    .object({
      version: z.string(),
      attempt: count,
      /** `ordered` until the edge has reported; then a word such as `fetching`, `probation`, `healthy`, `failed`. */
      state: z.string(),
      /** Why it was not fetched or does not run, a word such as `target_refused`. */
      cause: z.string().nullable(),
    })
    .nullable(),
  bootPrograms: z.array(bootProgram),
  /** Ranges of versions that it could not read for devices in the last half hour. */
  storeErrors: z.array(
    z.object({
      versionId: uuid,
      /** Null for a version that the organization does not have. */
      vdisk: z.object({ id: uuid, name: z.string(), number: count }).nullable(),
      offset: count,
      length: count,
      /** How often devices asked for it. */
      count,
      /** By the edge's clock. */
      since: instant,
    }),
  ),
  /** Other edges of its site that it has heard from directly. */
  peers: z
    .array(
      z.object({
        edgeId: uuid,
        /** Null for one that the site does not have. */
        edgeName: z.string().nullable(),
        heardMsAgo: count,
        booting: count,
      }),
    )
    .max(siteEdgesMax),
  /** Edges of its site that are not revoked, itself among them. */
  siteEdgeCount: count,
})
export type EdgeDetail = z.infer<typeof edgeDetail>

export const orderReleaseInput = z.object({
  edgeId: uuid,
  /** Null: the edge keeps the release that it has. */
  version: releaseVersion.nullable(),
})
export const orderedRelease = z.object({ version: z.string().nullable(), attempt: count })
/** The releases that edges can be updated to, newest first. */
export const edgeReleases = z.object({
  releases: z.array(z.object({ version: z.string(), archs: z.array(z.string()) })),
})

export const rotateKeyInput = z.object({ edgeId: uuid })
export const rotateKeyResult = z.object({ ordered: z.literal(true) })
export const signingKeyView = z.object({ id: uuid, publicKey: z.string() })

export const createJoinTokenInput = z.object({ siteId: uuid })
/** The token is shown once: only its hash is kept. */
export const createdJoinToken = z.object({ id: uuid, token: z.string(), expiresAt: instant })

export const joinTokenInput = z.object({ siteId: uuid, joinTokenId: uuid })
export const joinTokenView = z.object({
  expiresAt: instant,
  /** It has passed without an edge. */
  expired: z.boolean(),
  /** The edge that joined with it; null until then. */
  edge: edgeSummary.nullable(),
})

/** Those that can still be used, newest first: at most 100. */
export const joinTokenListInput = z.object({ siteId: uuid })
export const joinTokenList = z.object({
  items: z.array(
    z.object({
      id: uuid,
      createdAt: instant,
      expiresAt: instant,
      /** Null if the set-up of the demo created it, or the account is gone. */
      createdByName: z.string().nullable(),
    }),
  ),
})

export const setShareInput = z.object({
  edgeId: uuid,
  revision: seenRevision,
  weight: count.max(100),
  subnets: z.array(ipv4Network).max(subnetsMax, `An edge can prefer at most ${subnetsMax} networks.`),
})
export const drainEdgeInput = z.object({ edgeId: uuid, revision: seenRevision, draining: z.boolean() })
export const revokeEdgeInput = z.object({ edgeId: uuid })
export const revokeEdgeResult = z.object({ revokedAt: instant })
