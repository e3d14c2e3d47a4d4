import { bootProgram, edgeInterface, edgeMachine, releaseVersion, siteEdgesMax } from '@bootfarm/proto/uplink'
import { z } from 'zod'
import { ipv4Network } from '../rules/ipv4-network.ts'
import { instantOf, instantOrNull, listSort, text } from '../rules/list-sort.ts'
import { nameOf, pageInput, pageOf, searchInput, seenRevision } from '../rules/object-fields.ts'
import { count, instant, uuid } from '../rules/scalars.ts'

const statePair = z.object({ incarnation: count, counter: count })

const subnetsMax = 32
/** `siteEdges` in packages/proto/src/uplink-state.ts explains the fields. */
export const edgeShareView = z
  .object({
    revision: seenRevision,
    weight: count.max(100),
    subnets: z.array(z.string()),
    draining: z.boolean(),
  })
  .meta({ id: 'EdgeShare' })

export const edgeSort = listSort(
  {
    name: text('name'),
    siteName: text('site.name'),
    agentVersion: text('agentVersion'),
    enrolledAt: instantOf('enrolledAt'),
    heartbeatAt: instantOrNull('heartbeatAt'),
  },
  'name',
)
export const edgeListInput = z.object({
  ...pageInput,
  sort: edgeSort.input,
  farmId: uuid.optional(),
  siteId: uuid.optional(),
  state: z
    .enum(['online', 'offline', 'revoked'])
    .optional()
    .describe('`offline`: not revoked, and without a recent heartbeat.'),
  ...searchInput,
})
export const edgeSummary = z
  .object({
    id: uuid,
    name: z.string(),
    siteId: uuid,
    siteName: z.string(),
    online: z.boolean(),
    agentVersion: z.string(),
    arch: z.string(),
    enrolledAt: instant,
    revokedAt: instant.nullable(),
    heartbeatAt: instant.nullable().describe('Null until the first heartbeat.'),
    devicesBooting: count,
    reportBacklog: count,
    problems: z
      .array(z.string())
      .describe('What is wrong with its disks, words such as `store_low_space`; empty if nothing is.'),
    ...edgeShareView.shape,
  })
  .meta({ id: 'EdgeSummary' })
export type EdgeSummary = z.infer<typeof edgeSummary>
export const edgePage = pageOf(edgeSummary)

export const edgeGetInput = z.object({ edgeId: uuid })
const cacheCopies = z.array(
  z.object({
    edgeId: uuid,
    edgeName: z.string().nullable().describe('Null for one that the site does not have any more.'),
    count: count.describe('Count of copies.'),
    oldestAt: instant.describe('When the oldest of them was taken.'),
  }),
)

export const edgeDetail = edgeSummary
  .extend({
    bootEpoch: count,
    uptimeMs: count.nullable(),
    clockOffsetMs: z.number().int().nullable().describe("The edge's clock minus the API's at the last heartbeat."),
    ignored: z
      .array(z.object({ reason: z.string(), count }))
      .describe('Packets and requests that the edge ignored since its start, most first.'),
    desiredState: statePair.nullable().describe('Null until an edge has asked for its state.'),
    appliedState: statePair.nullable(),
    reportsLost: count.describe('Records that the edge declared lost.'),
    reportGaps: z
      .array(
        z.object({
          count,
          fromAt: instant.nullable().describe("By the edge's clock; null if unknown."),
          untilAt: instant.nullable(),
          reason: z.string(),
          declaredAt: instant,
        }),
      )
      .describe('Which, newest first; at most the last 20 stretches.'),
    address: z
      .string()
      .nullable()
      .describe('The address at which devices and other edges of the site reach it; null if not reported.'),
    interfaces: z.array(
      edgeInterface.extend({
        otherMtus: z
          .array(z.object({ edgeId: uuid, edgeName: z.string(), mtu: count }))
          .describe("Interfaces of the site's other edges in the same network whose MTU is another."),
      }),
    ),
    machine: edgeMachine.nullable().describe('The machine of the edge; null if not reported.'),
    keyRotatedAt: instant.nullable().describe('When its key was last replaced; null if it has its first.'),
    keyOrdered: z.boolean().describe('Another key was ordered, and the edge has not reported one.'),
    refused: z
      .object({ code: z.enum(['edge_too_old', 'edge_too_new']), version: count, at: instant })
      .nullable()
      .describe('The version of the uplink for which its requests are refused; null if they are not.'),
    stateRefused: z
      .string()
      .nullable()
      .describe('Why it has not applied its desired state, a word such as `too_large`; null if it has.'),
    release: z
      .object({
        version: z.string(),
        attempt: count,
        state: z
          .string()
          .describe(
            '`ordered` until the edge has reported; then a word such as `fetching`, `probation`, `healthy`, `failed`.',
          ),
        cause: z
          .string()
          .nullable()
          .describe('Why it was not fetched or does not run, a word such as `target_refused`.'),
      })
      .nullable()
      .describe('The release that it is to run, and what became of that; null if none is ordered.'),
    bootPrograms: z.array(bootProgram),
    storeErrors: z
      .array(
        z.object({
          versionId: uuid,
          vdisk: z
            .object({ id: uuid, name: z.string(), number: count })
            .nullable()
            .describe('Null for a version that the organization does not have.'),
          offset: count,
          length: count,
          count: count.describe('How often devices asked for it.'),
          since: instant.describe("By the edge's clock."),
        }),
      )
      .describe('Ranges of versions that it could not read for devices in the last half hour.'),
    peers: z
      .array(
        z.object({
          edgeId: uuid,
          edgeName: z.string().nullable().describe('Null for one that the site does not have.'),
          heardMsAgo: count,
          booting: count,
        }),
      )
      .max(siteEdgesMax)
      .describe('Other edges of its site that it has heard from directly.'),
    cacheCopies: cacheCopies.describe('Copies that it keeps of the write caches of other edges of its site.'),
    copiedTo: cacheCopies.describe('Other edges of its site that keep copies of its write caches.'),
    siteEdgeCount: count.describe('Edges of its site that are not revoked, itself among them.'),
  })
  .meta({ id: 'Edge' })
export type EdgeDetail = z.infer<typeof edgeDetail>

export const orderReleaseInput = z.object({
  edgeId: uuid,
  version: releaseVersion.nullable().describe('Null: the edge keeps the release that it has.'),
})
export const orderedRelease = z
  .object({ version: z.string().nullable(), attempt: count })
  .meta({ id: 'OrderedRelease' })
/** The releases that edges can be updated to, newest first. */
export const edgeReleases = z
  .object({
    releases: z.array(z.object({ version: z.string(), archs: z.array(z.string()) })),
  })
  .meta({ id: 'EdgeReleases' })

export const rotateKeyInput = z.object({ edgeId: uuid })
export const rotateKeyResult = z.object({ ordered: z.literal(true) }).meta({ id: 'EdgeKeyRotation' })
export const signingKeyView = z.object({ id: uuid, publicKey: z.string() }).meta({ id: 'SigningKey' })

export const createJoinTokenInput = z.object({ siteId: uuid })
/** The token is shown once: only its hash is kept. */
export const createdJoinToken = z
  .object({ id: uuid, token: z.string(), expiresAt: instant })
  .meta({ id: 'CreatedJoinToken' })

export const joinTokenInput = z.object({ siteId: uuid, joinTokenId: uuid })
export const joinTokenView = z
  .object({
    expiresAt: instant,
    expired: z.boolean().describe('It has passed without an edge.'),
    edge: edgeSummary.nullable().describe('The edge that joined with it; null until then.'),
  })
  .meta({ id: 'JoinToken' })

/** Those that can still be used, newest first: at most 100. */
export const joinTokenListInput = z.object({ siteId: uuid })
export const joinTokenList = z
  .object({
    items: z.array(
      z.object({
        id: uuid,
        createdAt: instant,
        expiresAt: instant,
        createdByName: z
          .string()
          .nullable()
          .describe('Null if the set-up of the demo created it, or the account is gone.'),
      }),
    ),
  })
  .meta({ id: 'JoinTokenList' })

export const setShareInput = z.object({
  edgeId: uuid,
  revision: seenRevision,
  weight: count.max(100),
  subnets: z.array(ipv4Network).max(subnetsMax, `An edge can prefer at most ${subnetsMax} networks.`),
})
export const drainEdgeInput = z.object({ edgeId: uuid, revision: seenRevision, draining: z.boolean() })
export const updateEdgeInput = z.object({
  edgeId: uuid,
  revision: seenRevision,
  name: nameOf('Enter a name for the edge.'),
})
export const revokeEdgeInput = z.object({
  edgeId: uuid,
  revision: seenRevision,
  name: z.string().trim().describe('The name of the edge, which confirms that it is the one.'),
})
export const revokeEdgeResult = z.object({ revokedAt: instant }).meta({ id: 'RevokedEdge' })
