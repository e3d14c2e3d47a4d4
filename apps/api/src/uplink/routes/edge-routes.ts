import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { inOrganization } from '@bootfarm/db'
import {
  captureSizeMax,
  enrolRequest,
  filesRead,
  filesReadSizeMax,
  heartbeat,
  heartbeatIntervalMs,
  pollQuery,
  pollWaitMs,
  reportBatch,
  reportBatchRatioMax,
  reportBatchSizeMax,
  rotateKeyRequest,
  stateQuery,
  storeMessage,
  storeMessageSizeMax,
} from '@bootfarm/proto/uplink'
import { uplinkSignedText, verifyText } from '@bootfarm/proto/uplink-signature'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { keepFilesRead } from '../../boot/files-read/keep-files-read.ts'
import { keepCapture } from '../../boot/keep-capture.ts'
import { announce, type Notifications } from '../../context/notifications.ts'
import { Places } from '../../context/places.ts'
import type { AuthenticatedEdge, PlatformContext, SystemContext } from '../../context/service-context.ts'
import type { Objects } from '../../difference/objects.ts'
import { AppError, errorTable } from '../../errors/app-error.ts'
import { toAppError } from '../../errors/to-app-error.ts'
import type { UpdateRepository } from '../../installation/update-repository.ts'
import type { Telemetry } from '../../rules/telemetry.ts'
import type { Uploads } from '../../upload/uploads.ts'
import { authenticateEdge, type EdgeIdentity, findEdgeIdentity } from '../enrol/authenticate-edge.ts'
import { enrolEdge } from '../enrol/enrol-edge.ts'
import { KnownEdges } from '../enrol/known-edges.ts'
import { type AcceptedVersions, versionRefusal } from '../enrol/require-version.ts'
import { rotateEdgeKey } from '../enrol/rotate-edge-key.ts'
import { applyReports } from '../reports/apply-reports.ts'
import { takeHeartbeat } from '../reports/take-heartbeat.ts'
import { Polls } from '../state/polls.ts'
import { parseStatePair } from '../state/site-facts.ts'
import { waitForState } from '../state/wait-for-state.ts'
import { takeStoreMessage } from '../store/take-store-message.ts'
import { differenceRoutes } from './difference-routes.ts'
import { bytesOf, parseBody, parseBytes, parsed, pathOf, signedRequestOf } from './signed-request.ts'
import { updateRoutes } from './update-routes.ts'
import { uploadRoutes } from './upload-routes.ts'

/**
 * Batches in progress, at most 512 KiB each; the database has fewer connections than an organization has places. An
 * edge sends one at a time. The places are those of edges that exist: whoever knows the id of none takes none.
 */
const reportBatchesMax = { edge: 2, organization: 8, all: 128 }
const smallBodySizeMax = 16 * 1024
/** A heartbeat names up to 32 boot programs, each with its kind and signer. */
const heartbeatSizeMax = 64 * 1024

const bootParameters = z.object({ bootId: z.uuid() })

declare module 'fastify' {
  interface FastifyRequest {
    /** The edge that the request names, if that was looked up before its body; nothing is proved by it. */
    edgeIdentity: EdgeIdentity | null
  }
}

interface EdgeRoutesOptions {
  context: PlatformContext
  notifications: Notifications
  dashboardUrl: string | null
  accepted: AcceptedVersions
  telemetry: Telemetry
  repository: UpdateRepository
  uploads: Uploads
  objects: Objects
}

/**
 * Serves /edge/v1, as specified in packages/proto/UPLINK.md. Bodies are read as bytes, because the signature covers
 * them.
 */
export async function edgeRoutes(
  app: FastifyInstance,
  { context, notifications, dashboardUrl, accepted, telemetry, repository, uploads, objects }: EdgeRoutesOptions,
) {
  takeBytes(app)

  const { authenticate, identify, within } = edgeAccess(context, accepted)

  app.post('/enrol', { bodyLimit: smallBodySizeMax }, async (request, reply) => {
    const body = parseBody(enrolRequest, request)
    requireProofOfPossession(request, body.publicKey)
    const refusal = versionRefusal(Number(request.headers['bootfarm-uplink'] ?? 1), accepted)
    if (refusal) throw refusal
    reply.code(201)
    return enrolEdge(context, body, request.ip)
  })

  app.post('/rotate-key', { bodyLimit: smallBodySizeMax }, (request) => {
    const { statements } = parseBody(rotateKeyRequest, request)
    return rotateEdgeKey(context, signedRequestOf(request), { statements, address: request.ip })
  })

  const onAcknowledged = telemetry.stateAcknowledged.bind(telemetry)
  app.get('/state', async (request, reply) => {
    const edge = await authenticate(request)
    const { after, waitMs, base } = parsed(stateQuery, request.query)
    const signal = closedSignal(reply)
    const options = { notifications, after: parseStatePair(after), base, waitMs, dashboardUrl, signal, onAcknowledged }
    return (await waitForState(context, edge, options)) ?? reply.code(204).send()
  })
  pollRoute(app, { context, notifications, dashboardUrl, accepted, onAcknowledged, within })

  await app.register(updateRoutes, { authenticate, within, clock: context.clock, repository })
  await app.register(uploadRoutes, { authenticate, within, uploads })
  await app.register(differenceRoutes, { authenticate, identify, within, objects })
  reportRoute(app, { authenticate, identify, within, telemetry, notifications })

  bootFileRoutes(app, { authenticate, within })

  app.post('/store', { bodyLimit: storeMessageSizeMax }, async (request) => {
    const edge = await authenticate(request)
    const body = parseBody(storeMessage, request)
    return within(edge, (tenant) => takeStoreMessage(tenant, edge, body))
  })

  app.post('/heartbeat', { bodyLimit: heartbeatSizeMax }, async (request) => {
    const edge = await authenticate(request)
    const body = parseBody(heartbeat, request)
    const state = await within(edge, (tenant) => takeHeartbeat(tenant, edge, body))
    return { state, nextMs: heartbeatIntervalMs, pollWaitMs }
  })
}

/** What an edge sends of a boot beside its reports, once it is over. */
function bootFileRoutes(app: FastifyInstance, { authenticate, within }: Pick<EdgeAccess, 'authenticate' | 'within'>) {
  app.put('/boots/:bootId/capture', { bodyLimit: captureSizeMax }, async (request, reply) => {
    const edge = await authenticate(request)
    const { bootId } = parsed(bootParameters, request.params)
    const pcap = Uint8Array.from(bytesOf(request))
    await within(edge, (tenant) => keepCapture(tenant, edge, { bootId, pcap }))
    return reply.code(204).send()
  })

  app.put('/boots/:bootId/reads', { bodyLimit: filesReadSizeMax }, async (request, reply) => {
    const edge = await authenticate(request)
    const { bootId } = parsed(bootParameters, request.params)
    const report = parseBody(filesRead, request)
    await within(edge, (tenant) => keepFilesRead(tenant, edge, { bootId, report }))
    return reply.code(204).send()
  })
}

type PollRouteOptions = Pick<EdgeRoutesOptions, 'context' | 'notifications' | 'dashboardUrl' | 'accepted'> &
  Pick<EdgeAccess, 'within'> & { onAcknowledged: (afterMs: number) => void }

/** The poll that carries a heartbeat: the only request of an edge while nothing happens. */
function pollRoute(
  app: FastifyInstance,
  { context, notifications, dashboardUrl, accepted, onAcknowledged, within }: PollRouteOptions,
) {
  const edges = new KnownEdges(context, accepted)
  const polls = new Polls(context)
  app.post('/state', { bodyLimit: heartbeatSizeMax }, async (request, reply) => {
    const signed = signedRequestOf(request)
    const { after, waitMs, base } = parsed(pollQuery, request.query)
    const signal = closedSignal(reply)
    const options = { notifications, after: parseStatePair(after), base, waitMs, dashboardUrl, signal, onAcknowledged }
    const remembered = await edges.authenticate(signed)
    request.caller = { kind: 'edge', id: remembered.edgeId, organizationId: remembered.organizationId }
    const body = parseBody(heartbeat, request)
    const firstLook = () => polls.take(remembered, body)
    const answer = await waitForState(context, remembered, { ...options, firstLook })
    if (answer !== 'not_known') return answer ?? reply.code(204).send()
    // Something about the edge has changed, or somebody held its row.
    const edge = await edges.authenticateAnew(signed)
    await within(edge, (tenant) => takeHeartbeat(tenant, edge, body))
    return (await waitForState(context, edge, options)) ?? reply.code(204).send()
  })
}

function requireProofOfPossession(request: FastifyRequest, publicKey: string): void {
  const { 'bootfarm-signature': signature } = request.headers
  const text = uplinkSignedText({
    method: request.method,
    path: pathOf(request),
    edgeId: '-',
    bootEpoch: 0,
    counter: 0,
    body: bytesOf(request),
  })
  if (typeof signature !== 'string' || !verifyText(text, signature, publicKey)) throw new AppError('signature_invalid')
}

function closedSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => controller.abort())
  return controller.signal
}

const unzip = promisify(gunzip)

/**
 * Announces with every answer, refusals included, in which form a batch may be sent (RFC 7694): edges compress from
 * then on. A hook for `onRequest`.
 */
async function offerGzip(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header('accept-encoding', 'gzip')
}

/**
 * Returns the batch as JSON bytes, however it was sent. Call it after the signature over the bytes as sent was
 * verified. Decompression ends at the limit: a bomb costs no more than a batch. Throws `unsupported_media_type`,
 * `too_large`, `invalid_body`.
 */
async function batchBytes(request: FastifyRequest): Promise<Uint8Array> {
  const bytes = bytesOf(request)
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  if (encoding === 'identity') return bytes
  if (encoding !== 'gzip')
    throw new AppError('unsupported_media_type', {
      public: 'Send the batch uncompressed or with the content encoding gzip.',
    })
  const maxOutputLength = Math.min(reportBatchSizeMax, Math.max(1, bytes.length) * reportBatchRatioMax)
  try {
    return await unzip(bytes, { maxOutputLength })
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE')
      throw new AppError('too_large', {
        public: `A decompressed batch may have at most ${reportBatchSizeMax} bytes, and at most ${reportBatchRatioMax} times its compressed size.`,
      })
    throw new AppError('invalid_body', { public: 'The body is not a complete gzip stream.', cause })
  }
}

/**
 * Returns an RFC 9457 problem document with the uplink's `code`; an unexpected error reveals nothing but that it
 * happened.
 */
export function problemHandler(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const error = fromFastify(thrown) ?? toAppError(thrown)
  const { status, title, log } = errorTable[error.code]
  request.log[log]({ code: error.code, detail: error.message }, 'uplink request refused')
  return reply
    .code(status)
    .type('application/problem+json')
    .send({ type: 'about:blank', title, status, code: error.code, detail: error.publicText, ...error.extra })
}

/** Refusals by Fastify itself, before a route runs. */
function fromFastify(thrown: unknown): AppError | null {
  if (!(thrown instanceof Error) || !('statusCode' in thrown)) return null
  if (thrown.statusCode === 413) return new AppError('too_large')
  if (typeof thrown.statusCode === 'number' && thrown.statusCode < 500)
    return new AppError('invalid_body', { internal: thrown.message })
  return null
}

function takeBytes(app: FastifyInstance): void {
  app.decorateRequest('edgeIdentity', null)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.setErrorHandler(problemHandler)
}

type EdgeAccess = ReturnType<typeof edgeAccess>

function edgeAccess(context: PlatformContext, accepted: AcceptedVersions) {
  const authenticate = async (request: FastifyRequest, anyEpoch = false) => {
    const signed = signedRequestOf(request)
    const identity = request.edgeIdentity ?? (await findEdgeIdentity(context, signed.edgeId))
    const edge = await authenticateEdge(context, identity, signed, { anyEpoch, accepted })
    request.caller = { kind: 'edge', id: edge.edgeId, organizationId: edge.organizationId }
    return edge
  }
  /** One transaction in the edge's organization. */
  const within = <T>({ organizationId }: AuthenticatedEdge, work: (tenant: SystemContext) => Promise<T>) =>
    inOrganization(context.db, organizationId, (db) => work({ db, clock: context.clock }))
  /** Before the body: an id that no edge has ends here. */
  const identify = async (request: FastifyRequest) => {
    request.edgeIdentity = await findEdgeIdentity(context, signedRequestOf(request).edgeId)
    return request.edgeIdentity
  }
  return { authenticate, identify, within }
}

type ReportRouteOptions = EdgeAccess & Pick<EdgeRoutesOptions, 'telemetry' | 'notifications'>

function reportRoute(
  app: FastifyInstance,
  { authenticate, identify, within, telemetry, notifications }: ReportRouteOptions,
): void {
  const places = new Places()
  const holdPlace = async (request: FastifyRequest, reply: FastifyReply) => {
    const { public_key: edge, organization_id: organization } = await identify(request)
    places.hold(reply, [
      { key: `edge ${edge}`, max: reportBatchesMax.edge },
      { key: `organization ${organization}`, max: reportBatchesMax.organization },
      { key: 'all', max: reportBatchesMax.all },
    ])
  }
  const reportsLimit = {
    bodyLimit: reportBatchSizeMax,
    onRequest: [offerGzip, holdPlace],
    onError: async () => telemetry.reportsRefused(),
  }
  app.post('/reports', reportsLimit, async (request) => {
    const edge = await authenticate(request, true)
    const batch = parseBytes(reportBatch, await batchBytes(request))
    for (const report of batch.reports)
      if (report.type === 'unreadable') request.log.warn({ edgeId: edge.edgeId, ...report }, 'report not readable')
    const applied = await within(edge, (tenant) => applyReports(tenant, edge, batch))
    announce(notifications, edge.organizationId, applied.changed)
    telemetry.reportsApplied(applied)
    const { ackedSeq } = applied
    const { bootEpoch, fromSeq } = batch
    request.log.debug({ edgeId: edge.edgeId, bootEpoch, fromSeq, ackedSeq }, 'reports applied')
    return { bootEpoch: batch.bootEpoch, ackedSeq }
  })
}
