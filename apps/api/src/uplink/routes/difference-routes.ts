import { differencePieceSize, differencePiecesMax } from '@bootfarm/proto/uplink'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Places } from '../../context/places.ts'
import type { AuthenticatedEdge, SystemContext } from '../../context/service-context.ts'
import { hashSize, type Objects } from '../../difference/objects.ts'
import { giveList, givePiece, missingPieces, takeList, takePiece } from '../../difference/transfer-pieces.ts'
import { AppError } from '../../errors/app-error.ts'
import { toAppError } from '../../errors/to-app-error.ts'
import type { EdgeIdentity } from '../enrol/authenticate-edge.ts'
import { bytesOf, parsed } from './signed-request.ts'

/** An object store that fails is left alone for so long. */
const retryAfterSeconds = 10
/** Pieces in memory at once, 4 MiB each; an edge sends or gets one at a time. */
const piecesMax = { edge: 2, organization: 8, all: 32 }

const rangeHeader = /^bytes=(\d{1,16})-(\d{1,16})$/
const parameters = z.object({ differenceId: z.uuid() })
const decimal = z
  .string()
  .regex(/^\d{1,16}$/)
  .transform(Number)
const pieceParameters = parameters.extend({ index: decimal.pipe(z.number().max(differencePiecesMax - 1)) })
const listQuery = z.object({ sizeBytes: decimal.pipe(z.number().int().min(1).max(Number.MAX_SAFE_INTEGER)) })

interface DifferenceRouteOptions {
  authenticate: (request: FastifyRequest) => Promise<AuthenticatedEdge>
  /** Before the body. */
  identify: (request: FastifyRequest) => Promise<EdgeIdentity>
  within: <T>(edge: AuthenticatedEdge, work: (tenant: SystemContext) => Promise<T>) => Promise<T>
  objects: Objects
}

/** Differences that edges send and get: packages/proto/UPLINK.md, "Differences". */
export async function differenceRoutes(
  app: FastifyInstance,
  { authenticate, identify, within, objects }: DifferenceRouteOptions,
): Promise<void> {
  const places = new Places()
  const holdPlace = async (request: FastifyRequest, reply: FastifyReply) => {
    const { public_key: edge, organization_id: organization } = await identify(request)
    places.hold(reply, [
      { key: `edge ${edge}`, max: piecesMax.edge },
      { key: `organization ${organization}`, max: piecesMax.organization },
      { key: 'all', max: piecesMax.all },
    ])
  }
  const transferOf = async (request: FastifyRequest) => {
    const edge = await authenticate(request)
    const { differenceId } = parsed(parameters, request.params)
    const inTenant = <T>(work: (tenant: SystemContext) => Promise<T>) => within(edge, work)
    return { edge, differenceId, objects, within: inTenant }
  }
  const indexOf = (request: FastifyRequest) => parsed(pieceParameters, request.params).index
  const lists = { bodyLimit: differencePiecesMax * hashSize, onRequest: [holdPlace] }
  app.put('/differences/:differenceId/list', lists, async (request, reply) => {
    const transfer = await transferOf(request)
    const { sizeBytes } = parsed(listQuery, request.query)
    await orLater(reply, takeList(transfer, { list: bytesOf(request), sizeBytes }))
    return reply.code(204).send()
  })
  app.get('/differences/:differenceId/missing', { onRequest: [holdPlace] }, async (request, reply) => ({
    missing: await orLater(reply, missingPieces(await transferOf(request))),
  }))
  const pieces = { bodyLimit: differencePieceSize, onRequest: [holdPlace] }
  app.put('/differences/:differenceId/pieces/:index', pieces, async (request, reply) => {
    const transfer = await transferOf(request)
    await orLater(reply, takePiece(transfer, { index: indexOf(request), bytes: bytesOf(request) }))
    return reply.code(204).send()
  })
  app.get('/differences/:differenceId/list', { onRequest: [holdPlace] }, async (request, reply) =>
    sendBytes(reply, await orLater(reply, giveList(await transferOf(request)))),
  )
  app.get('/differences/:differenceId/pieces/:index', { onRequest: [holdPlace] }, async (request, reply) => {
    const transfer = await transferOf(request)
    return sendRange(request, reply, await orLater(reply, givePiece(transfer, indexOf(request))))
  })
}

/** Tells the edge when to try again, where the object store fails. */
async function orLater<T>(reply: FastifyReply, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (toAppError(error).code === 'unavailable') reply.header('retry-after', String(retryAfterSeconds))
    throw error
  }
}

/** A whole piece, or one range of it: a slow line needs no long time-out then. Throws `invalid_body`. */
function sendRange({ headers }: FastifyRequest, reply: FastifyReply, bytes: Uint8Array): FastifyReply {
  if (headers.range === undefined) return sendBytes(reply, bytes)
  const [, from, to] = rangeHeader.exec(headers.range) ?? []
  const first = Number(from)
  const last = Math.min(Number(to), bytes.length - 1)
  if (!(first <= last))
    throw new AppError('invalid_body', { public: `Ask for one range of the ${bytes.length} bytes of the piece.` })
  reply.code(206).header('content-range', `bytes ${first}-${last}/${bytes.length}`)
  return sendBytes(reply, bytes.subarray(first, last + 1))
}

function sendBytes(reply: FastifyReply, bytes: Uint8Array): FastifyReply {
  return reply.type('application/octet-stream').send(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
}
