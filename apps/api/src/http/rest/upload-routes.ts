import { Readable } from 'node:stream'
import { inOrganization } from '@bootfarm/db'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Places } from '../../context/places.ts'
import { AppError } from '../../errors/app-error.ts'
import { requireNotSuspended } from '../../organization/require-not-suspended.ts'
import type { Actor } from '../../rules/actor.ts'
import { receivePiece } from '../../upload/change-uploads.ts'
import { readUpload } from '../../upload/list-uploads.ts'
import { pieceSizeMax, pieceType, uploadGetInput } from '../../upload/schema.ts'
import type { TrpcContext } from '../trpc/context.ts'
import { requireWithinRate } from '../trpc/trpc.ts'

/** The bytes of an upload: HEAD tells how many arrived, PATCH sends the next ones (tus 1.0.0). */
export const piecePath = '/vdisks/:vdiskId/uploads/:uploadId/bytes'
/** Pieces that arrive at once. A browser and the command line send one at a time. */
const piecesMax = { organization: 8, all: 64 }
const tusVersion = '1.0.0'
const offsetHeader = z
  .string()
  .regex(/^\d{1,16}$/)
  .transform(Number)

interface PieceOptions {
  createContext: (request: FastifyRequest) => TrpcContext
}

/** docs/reference/api.md, "Uploads". */
export async function pieceRoutes(app: FastifyInstance, { createContext }: PieceOptions): Promise<void> {
  // The stream itself: nothing of it is read before its sender is known to have the right.
  app.addContentTypeParser(pieceType, (_request, payload, done) => done(null, payload))
  app.addHook('onRequest', async (_request, reply) => {
    reply.header('tus-resumable', tusVersion)
  })
  const places = new Places()

  app.route({
    method: 'HEAD',
    url: piecePath,
    handler: async (request, reply) => {
      const { context, actor, input } = await allow(request, createContext)
      const upload = await inOrganization(context.db, actor.organizationId, (db) =>
        readUpload({ db, actor, uploads: context.uploads }, input),
      )
      return tell(reply, upload).code(200).send()
    },
  })
  app.patch(piecePath, { bodyLimit: pieceSizeMax }, async (request, reply) => {
    const { context, actor, input } = await allow(request, createContext)
    const offset = offsetHeader.safeParse(request.headers['upload-offset'])
    if (!offset.success)
      throw new AppError('invalid', { public: 'Send the header Upload-Offset: the offset of the first byte.' })
    if (Number(request.headers['content-length'] ?? 0) > pieceSizeMax)
      throw new AppError('too_large', { public: `A piece can have at most ${pieceSizeMax} bytes.` })
    places.hold(reply, [
      { key: actor.organizationId, max: piecesMax.organization },
      { key: 'all', max: piecesMax.all },
    ])
    // A slow sender holds nobody else's turn.
    endTurns(request)
    // A request without bytes has no body: all of them arrived before, and the answer that said so was lost.
    const bytes = request.body instanceof Readable ? request.body : Readable.from([])
    const held = await receivePiece({ ...context, actor }, { ...input, offset: offset.data, bytes })
    bytes.resume()
    return tell(reply, held).code(204).send()
  })
}

/** Throws what a procedure throws. */
async function allow(request: FastifyRequest, createContext: PieceOptions['createContext']) {
  const context = createContext(request)
  const actor = await context.findActor()
  if (!actor) throw new AppError('unauthenticated')
  if (actor.kind === 'person') requireWithinRate(context, actor.userId)
  const { data: input } = uploadGetInput.safeParse(request.params)
  if (!input) throw new AppError('invalid', { public: 'The path needs the ids (UUIDs) of the vDisk and the upload.' })
  await requireRight(context, actor, input.vdiskId)
  return { context, actor, input }
}

function requireRight({ db, checks }: TrpcContext, actor: Actor, vdiskId: string): Promise<void> {
  return inOrganization(db, actor.organizationId, async (tenant) => {
    await checks.authorise({ db: tenant, actor }, { permission: 'vdisk.change' }, [{ kind: 'vdisk', ids: [vdiskId] }])
    await requireNotSuspended(tenant, actor.organizationId)
  })
}

function endTurns(request: FastifyRequest): void {
  const ends = request.turnEnds ?? []
  request.turnEnds = null
  for (const end of ends) end()
}

function tell(reply: FastifyReply, held: { receivedBytes: number; sizeBytes: number }): FastifyReply {
  return reply.header('upload-offset', String(held.receivedBytes)).header('upload-length', String(held.sizeBytes))
}
