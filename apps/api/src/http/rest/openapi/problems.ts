import { type AppErrorCode, errorTable } from '../../../errors/app-error.ts'
import type { Operation } from '../operations.ts'

type Json = Record<string, unknown>

/** What any operation may answer. */
const anyOperation: AppErrorCode[] = [
  'invalid',
  'unauthenticated',
  'forbidden',
  'rate_limited',
  'internal',
  'unavailable',
]

const changes: AppErrorCode[] = [
  'invalid_body',
  'foreign_origin',
  'organization_suspended',
  'quota_exceeded',
  'conflict',
  'too_large',
  'unsupported_media_type',
]

/** The codes that an operation may answer, as far as its shape says. */
export function codesOf({ pathNames, policy, method, type, query }: Operation): AppErrorCode[] {
  const names = 'cursor' in query ? pathNames.length : Object.keys(query).length + pathNames.length
  const namesObject = names > 0 || (typeof policy.place !== 'string' && policy.place !== undefined)
  return [
    ...anyOperation,
    ...(namesObject || method !== 'GET' ? (['not_found'] as const) : []),
    ...(method === 'GET' ? [] : changes),
    ...(method === 'POST' && type === 'mutation' ? (['idempotency_key_reused'] as const) : []),
  ]
}

export function problemResponse(codes: AppErrorCode[]): Json {
  return {
    description: codes.map((code) => `\`${code}\`: ${errorTable[code].title}`).join(' '),
    content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
  }
}

const text = { type: 'string' }

export const problemSchema = {
  type: 'object',
  description: 'RFC 9457. `code` is stable; the texts are for people.',
  required: ['type', 'title', 'status', 'code', 'detail', 'requestId'],
  properties: {
    type: { ...text, format: 'uri-reference', description: 'Documentation of the code.' },
    title: text,
    status: { type: 'integer', minimum: 400, maximum: 599 },
    code: { type: 'string', enum: Object.keys(errorTable) },
    detail: text,
    errors: {
      type: 'array',
      description: 'Field errors.',
      items: {
        type: 'object',
        required: ['in', 'field', 'message'],
        properties: {
          in: { type: 'string', enum: ['path', 'query', 'body', 'header', 'input'] },
          field: text,
          message: text,
        },
      },
    },
    requestId: { ...text, description: 'Identifies the request in the API’s log.' },
  },
}
