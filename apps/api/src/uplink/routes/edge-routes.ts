import { inOrganization } from '@bootfarm/db'
import {
  captureSizeMax,
  enrolRequest,
  heartbeat,
  reportBatch,
  reportBatchSizeMax,
  rotateKeyRequest,
  stateQuery,
  storeMessage,
  storeMessageSizeMax,
} from '@bootfarm/proto/uplink'
import { uplinkSignedText, verifyText } from '@bootfarm/proto/uplink-signature'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { keepCapture } from '../../boot/keep-capture.ts'
import type { Notifications } from '../../context/notifications.ts'
import type { AuthenticatedEdge, PlatformContext, SystemContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Telemetry } from '../../rules/telemetry.ts'
import { authenticateEdge } from '../enrol/authenticate-edge.ts'
import { enrolEdge } from '../enrol/enrol-edge.ts'
import { type AcceptedVersions, versionRefusal } from '../enrol/require-version.ts'
import { rotateEdgeKey } from '../enrol/rotate-edge-key.ts'
import { applyReports } from '../reports/apply-reports.ts'
import { takeHeartbeat } from '../reports/take-heartbeat.ts'
import { GivenStates } from '../state/given-states.ts'
import { parseStatePair } from '../state/state-pair.ts'
import { waitForState } from '../state/wait-for-state.ts'
import { takeStoreMessage } from '../store/take-store-message.ts'
import { batchBytes, offerGzip } from './batch-body.ts'
import { inFlightLimit } from './in-flight-limit.ts'
import { problemHandler } from './problem.ts'
import { bytesOf, parseBody, parseBytes, parsed, pathOf, signedRequestOf } from './signed-request.ts'

/** Of 512 KiB each at most; the database has fewer connections than this. */
const reportBatchesAtOnceMax = 32
const smallBodySizeMax = 16 * 1024
/** A heartbeat names up to 32 boot programs, each with what it is and who signed it. */
const heartbeatSizeMax = 64 * 1024

const captureParameters = z.object({ bootId: z.uuid() })

export interface EdgeRoutesOptions {
  context: PlatformContext
  notifications: Notifications
  accepted: AcceptedVersions
  telemetry: Telemetry
}

/** /edge/v1, as packages/proto/UPLINK.md says. Bodies are taken as bytes, for the signature is over them. */
export async function edgeRoutes(
  app: FastifyInstance,
  { context, notifications, accepted, telemetry }: EdgeRoutesOptions,
) {
  const given = new GivenStates(notifications)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.setErrorHandler(problemHandler)

  const authenticate = async (request: FastifyRequest, anyEpoch = false) => {
    const edge = await authenticateEdge(context, signedRequestOf(request), { anyEpoch, accepted })
    request.caller = { kind: 'edge', id: edge.edgeId, organizationId: edge.organizationId }
    return edge
  }
  /** One transaction in the edge's organization. */
  const within = <T>({ organizationId }: AuthenticatedEdge, work: (tenant: SystemContext) => Promise<T>) =>
    inOrganization(context.db, organizationId, (db) => work({ db, clock: context.clock }))

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

  app.get('/state', async (request, reply) => {
    const edge = await authenticate(request)
    const { after, waitMs } = parsed(stateQuery, request.query)
    const envelope = await waitForState(context, edge, {
      notifications,
      given,
      after: parseStatePair(after),
      waitMs,
      signal: closedSignal(reply),
      onAcknowledged: telemetry.stateAcknowledged.bind(telemetry),
    })
    if (envelope) return envelope
    return reply.code(204).send()
  })

  const reportsLimit = {
    bodyLimit: reportBatchSizeMax,
    onRequest: [offerGzip, inFlightLimit(reportBatchesAtOnceMax)],
    onError: async () => telemetry.reportsRefused(),
  }
  app.post('/reports', reportsLimit, async (request) => {
    const edge = await authenticate(request, true)
    const batch = parseBytes(reportBatch, await batchBytes(request))
    for (const report of batch.reports)
      if (report.type === 'unreadable') request.log.warn({ edgeId: edge.edgeId, ...report }, 'report not readable')
    const applied = await within(edge, (tenant) => applyReports(tenant, edge, batch))
    telemetry.reportsApplied(applied)
    const { ackedSeq } = applied
    const { bootEpoch, fromSeq } = batch
    request.log.debug({ edgeId: edge.edgeId, bootEpoch, fromSeq, ackedSeq }, 'reports applied')
    return { bootEpoch: batch.bootEpoch, ackedSeq }
  })

  app.put('/boots/:bootId/capture', { bodyLimit: captureSizeMax }, async (request, reply) => {
    const edge = await authenticate(request)
    const { bootId } = parsed(captureParameters, request.params)
    const pcap = Uint8Array.from(bytesOf(request))
    await within(edge, (tenant) => keepCapture(tenant, edge, { bootId, pcap }))
    return reply.code(204).send()
  })

  app.post('/store', { bodyLimit: storeMessageSizeMax }, async (request) => {
    const edge = await authenticate(request)
    const body = parseBody(storeMessage, request)
    return within(edge, (tenant) => takeStoreMessage(tenant, edge, body))
  })

  app.post('/heartbeat', { bodyLimit: heartbeatSizeMax }, async (request) => {
    const edge = await authenticate(request)
    const body = parseBody(heartbeat, request)
    return { state: await within(edge, (tenant) => takeHeartbeat(tenant, edge, body)) }
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
