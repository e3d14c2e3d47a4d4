import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { reportBatchRatioMax, reportBatchSizeMax } from '@bootfarm/proto/uplink'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import { bytesOf } from './signed-request.ts'

const unzip = promisify(gunzip)

/**
 * Says on every answer, refusals too, in which form a batch may come (RFC 7694): edges compress from then on. A hook
 * for `onRequest`.
 */
export async function offerGzip(_request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.header('accept-encoding', 'gzip')
}

/**
 * The batch as JSON bytes, however it was sent. To be called when the signature, which is over what was sent, was found
 * right. Unzipping ends at the limit: a bomb costs no more than a batch. Throws `unsupported_media_type`, `too_large`,
 * `invalid_body`.
 */
export async function batchBytes(request: FastifyRequest): Promise<Uint8Array> {
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
