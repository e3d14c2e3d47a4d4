import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import type { Operation } from './operations.ts'
import { problemError } from './problem.ts'
import { invalid } from './read-input.ts'

// RFC 9110, 13: an object is named by its revision, which a change may name in If-Match in place of its body.

/** Whether an operation answers with one object, whose ETag the caller may ask by. */
export function hasEtag({ method, query, status }: Pick<Operation, 'method' | 'query' | 'status'>): boolean {
  return method === 'GET' && status === 200 && !('cursor' in query)
}

/**
 * `"REVISION-HASH"`, or `"HASH"` of an object without one. The hash covers what changes without a new revision, such as
 * the state of a device.
 */
export function etagOf(output: unknown, text: string): string {
  const hash = createHash('sha256').update(text).digest('base64url').slice(0, 22)
  const revision: unknown = Reflect.get(Object(output), 'revision')
  return revision === undefined ? `"${hash}"` : `"${String(revision)}.${hash}"`
}

/** Whether the caller has the object as it is: proxies that compress answers mark their tags as weak. */
export function isNoneMatch({ headers }: FastifyRequest, etag: string): boolean {
  const asked = headers['if-none-match']?.split(',').map((one) => one.trim().replace(/^W\//, ''))
  return asked?.some((one) => one === etag || one === '*') ?? false
}

/**
 * The revision that If-Match names: a whole ETag, or only its revision, `"7"`. Undefined without the header, and for
 * `*`. Throws `invalid` for anything else, and where the operation compares no revision.
 */
function ifMatchOf({ revision }: Operation, { headers }: FastifyRequest): number | string | undefined {
  const given = headers['if-match']
  if (given === undefined) return undefined
  if (revision === null) throw refused('This operation compares no revision.')
  if (given === '*') return undefined
  const [, seen = ''] = /^(?:W\/)?"(\w{1,64})(?:\.[\w-]{22})?"$/.exec(given) ?? []
  const isNumber = revision.schema.type === 'integer'
  if (seen === '' || (isNumber && !/^\d{1,10}$/.test(seen)))
    throw refused('It must be one ETag of the object, or its revision in quotation marks.')
  return isNumber ? Number(seen) : seen
}

/**
 * The input with the revision that If-Match names. Throws `invalid` where the body names another, and
 * `precondition_required` where a change that takes one gets none.
 */
export function withIfMatch(operation: Operation, request: FastifyRequest, input: unknown): unknown {
  const seen = ifMatchOf(operation, request)
  const told: unknown = Reflect.get(Object(input), 'revision')
  if (seen !== undefined && told !== undefined && seen !== told) throw refused('It differs from `revision`.')
  if (operation.revision?.isRequired && seen === undefined && told === undefined)
    throw new AppError('precondition_required')
  return seen === undefined ? input : { ...Object(input), revision: seen }
}

/** A change that the revision in If-Match refuses is a failed precondition, which names the current revision. */
export function failedPrecondition({ headers }: FastifyRequest, thrown: unknown): unknown {
  if (headers['if-match'] === undefined) return thrown
  const { code, publicText, extra } = problemError(thrown)
  if (code !== 'conflict' || extra.revision === undefined) return thrown
  return new AppError('precondition_failed', { public: publicText, extra })
}

function refused(message: string): AppError {
  return invalid([{ in: 'header', field: 'if-match', message }])
}
