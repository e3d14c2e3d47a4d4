import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import type { SignedRequest } from '../enrol/authenticate-edge.ts'

const decimal = z
  .string()
  .regex(/^\d{1,16}$/)
  .transform(Number)
  .refine(Number.isSafeInteger)
const signatureHeaders = z.object({
  'bootfarm-edge': z.uuid().lowercase(),
  'bootfarm-epoch': decimal,
  'bootfarm-counter': decimal,
  'bootfarm-signature': z.string().max(128),
  /** Absent if the edge has the first version. */
  'bootfarm-uplink': z
    .string()
    .regex(/^\d{1,4}$/)
    .transform(Number)
    .default(1),
})

/**
 * Returns the fields of a signed request, from its headers and its bytes. Throws `signature_invalid` for missing or
 * malformed headers.
 */
export function signedRequestOf(request: FastifyRequest): SignedRequest {
  const headers = signatureHeaders.safeParse(request.headers)
  if (!headers.success)
    throw new AppError('signature_invalid', { public: 'The signature headers are missing or malformed.' })
  return {
    method: request.method,
    path: pathOf(request),
    edgeId: headers.data['bootfarm-edge'],
    bootEpoch: headers.data['bootfarm-epoch'],
    counter: headers.data['bootfarm-counter'],
    signature: headers.data['bootfarm-signature'],
    uplinkVersion: headers.data['bootfarm-uplink'],
    body: bytesOf(request),
  }
}

/** Returns the path as sent: the signature covers every byte of it. */
export function pathOf(request: FastifyRequest): string {
  return request.raw.url ?? ''
}

export function bytesOf(request: FastifyRequest): Uint8Array {
  return Buffer.isBuffer(request.body) ? request.body : new Uint8Array()
}

/** Throws `invalid_body`. */
export function parseBody<T extends z.ZodType>(schema: T, request: FastifyRequest): z.output<T> {
  return parseBytes(schema, bytesOf(request))
}

/** Throws `invalid_body`. */
export function parseBytes<T extends z.ZodType>(schema: T, bytes: Uint8Array): z.output<T> {
  let body: unknown
  try {
    body = JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch (cause) {
    throw new AppError('invalid_body', { public: 'The body is not JSON.', cause })
  }
  return parsed(schema, body)
}

/** Throws `invalid_body`. */
export function parsed<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  const place = issue?.path.join('.') ?? ''
  throw new AppError('invalid_body', { public: `${place}: ${issue?.message ?? 'not valid'}` })
}
