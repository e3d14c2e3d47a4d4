import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Places } from '../../context/places.ts'
import type { AuthenticatedEdge, DbOrTransaction, SystemContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import { activeStates } from '../../store/public.ts'
import type { Uploads } from '../../upload/uploads.ts'
import { parsed } from './signed-request.ts'

/** Ranges that are read at once; an edge asks for one at a time. */
const rangesMax = { organization: 8, all: 32 }
const rangeSizeMax = 8 * 1024 * 1024

const parameters = z.object({ uploadId: z.uuid() })
const rangeHeader = /^bytes=(\d{1,16})-(\d{1,16})$/

interface UploadRouteOptions {
  authenticate: (request: FastifyRequest) => Promise<AuthenticatedEdge>
  within: <T>(edge: AuthenticatedEdge, work: (tenant: SystemContext) => Promise<T>) => Promise<T>
  uploads: Uploads
}

/** Ranges of the uploads that an edge is to import: packages/proto/UPLINK.md, "Uploads". */
export async function uploadRoutes(
  app: FastifyInstance,
  { authenticate, within, uploads }: UploadRouteOptions,
): Promise<void> {
  const places = new Places()
  app.get('/uploads/:uploadId', async (request, reply) => {
    const edge = await authenticate(request)
    const { uploadId } = parsed(parameters, request.params)
    places.hold(reply, [
      { key: edge.organizationId, max: rangesMax.organization },
      { key: 'all', max: rangesMax.all },
    ])
    const size = await within(edge, ({ db }) => sizeForEdge(db, edge, uploadId))
    const { first, last } = rangeOf(request, size)
    const { organizationId } = edge
    return reply
      .code(206)
      .type('application/octet-stream')
      .header('content-length', String(last - first + 1))
      .header('content-range', `bytes ${first}-${last}/${size}`)
      .send(uploads.files.get({ organizationId, uploadId }, { first, last }))
  })
}

/** Throws `not_found` unless a job of the edge takes the upload. */
async function sizeForEdge(
  db: DbOrTransaction,
  { organizationId, edgeId }: AuthenticatedEdge,
  uploadId: string,
): Promise<number> {
  const job = await db.storeJob.findFirst({
    where: { organizationId, edgeId, uploadId, state: activeStates },
    select: { id: true },
  })
  const upload = await db.upload.findFirst({
    where: { organizationId, id: uploadId, sha256: { not: null } },
    select: { sizeBytes: true },
  })
  if (!job || !upload) throw new AppError('not_found')
  return Number(upload.sizeBytes)
}

/** Longer ranges are shortened (RFC 9110, section 14.2). Throws `invalid_body` for none, and for one beyond the end. */
function rangeOf({ headers }: FastifyRequest, size: number): { first: number; last: number } {
  const [, from, to] = rangeHeader.exec(headers.range ?? '') ?? []
  const first = Number(from)
  const last = Math.min(Number(to), size - 1, first + rangeSizeMax - 1)
  if (first <= last) return { first, last }
  throw new AppError('invalid_body', { public: `Ask for one range of the ${size} bytes.` })
}
