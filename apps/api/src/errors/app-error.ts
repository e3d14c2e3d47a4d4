import type { TRPC_ERROR_CODE_KEY } from '@trpc/server'

type LogLevel = 'debug' | 'info' | 'warn' | 'error'

interface ErrorRow {
  status: number
  trpc: TRPC_ERROR_CODE_KEY
  log: LogLevel
  title: string
}

/** The one table of errors that leave the API: HTTP status, tRPC code, log level, and the sentence for people. */
export const errorTable = {
  invalid: row(400, 'BAD_REQUEST', 'debug', 'The request is not valid.'),
  unauthenticated: row(401, 'UNAUTHORIZED', 'debug', 'Sign in first.'),
  forbidden: row(403, 'FORBIDDEN', 'info', 'Your role does not allow this.'),
  not_found: row(404, 'NOT_FOUND', 'debug', 'This object does not exist.'),
  conflict: row(409, 'CONFLICT', 'info', 'This conflicts with the current state.'),
  quota_exceeded: row(403, 'FORBIDDEN', 'info', 'The organization has reached its limit.'),
  organization_suspended: row(
    403,
    'FORBIDDEN',
    'info',
    'This organization is suspended and read-only until the operator of this installation lifts the suspension. Devices still boot.',
  ),
  sign_up_closed: row(
    403,
    'FORBIDDEN',
    'info',
    'Sign-up is closed. Ask an owner of your organization for an invitation.',
  ),
  confirmation_needed: row(403, 'FORBIDDEN', 'info', 'Enter your password again first.'),
  method_not_allowed: row(405, 'METHOD_NOT_SUPPORTED', 'debug', 'This path does not support this method.'),
  precondition_failed: row(412, 'PRECONDITION_FAILED', 'info', 'The object has another revision than If-Match names.'),
  precondition_required: row(
    428,
    'PRECONDITION_REQUIRED',
    'debug',
    'Name the revision that you have seen: in If-Match or as `revision`.',
  ),
  cursor_expired: row(410, 'BAD_REQUEST', 'info', 'The list does not continue at this cursor any more.'),
  uri_too_long: row(414, 'BAD_REQUEST', 'info', 'The address is too long.'),
  unsupported_media_type: row(415, 'UNSUPPORTED_MEDIA_TYPE', 'info', 'The body must be application/json.'),
  headers_too_large: row(431, 'BAD_REQUEST', 'info', 'The headers are too large.'),
  idempotency_key_reused: row(
    422,
    'UNPROCESSABLE_CONTENT',
    'info',
    'This Idempotency-Key was already used with another request.',
  ),
  rate_limited: row(429, 'TOO_MANY_REQUESTS', 'info', 'Too many requests. Wait, then try again.'),
  foreign_origin: row(403, 'FORBIDDEN', 'warn', 'This request came from another site.'),
  internal: row(500, 'INTERNAL_SERVER_ERROR', 'error', 'An internal error occurred in the API.'),
  unavailable: row(503, 'SERVICE_UNAVAILABLE', 'warn', 'The database does not respond. Try again.'),
  // The uplink's own codes: packages/proto/UPLINK.md.
  join_token_unknown: row(403, 'FORBIDDEN', 'warn', 'This join token is unknown.'),
  join_token_used: row(409, 'CONFLICT', 'warn', 'This join token was already used by another edge.'),
  join_token_expired: row(403, 'FORBIDDEN', 'warn', 'This join token has expired.'),
  edge_unknown: row(401, 'UNAUTHORIZED', 'warn', 'This edge is unknown.'),
  edge_revoked: row(403, 'FORBIDDEN', 'warn', 'This edge was revoked.'),
  signature_invalid: row(401, 'UNAUTHORIZED', 'warn', 'The signature does not match the request.'),
  stale_epoch: row(409, 'CONFLICT', 'warn', 'A later boot epoch of this edge is already known.'),
  invalid_body: row(400, 'BAD_REQUEST', 'warn', 'The body is not valid for this route.'),
  edge_too_old: row(426, 'PRECONDITION_FAILED', 'warn', 'This edge is too old for the control plane.'),
  edge_too_new: row(426, 'PRECONDITION_FAILED', 'warn', 'This edge is too new for the control plane.'),
  boot_unknown: row(404, 'NOT_FOUND', 'warn', 'This edge has sent no report of this boot.'),
  report_gap: row(409, 'CONFLICT', 'warn', 'Reports before these are missing.'),
  too_large: row(413, 'PAYLOAD_TOO_LARGE', 'warn', 'The body is too large.'),
} as const satisfies Record<string, ErrorRow>

export type AppErrorCode = keyof typeof errorTable

export interface FieldProblem {
  /** `input`: the path, query and body taken together. */
  in: 'path' | 'query' | 'body' | 'header' | 'input'
  /** Its name, with dots where it is within another; empty for the whole. */
  field: string
  message: string
}

interface AppErrorTexts {
  /** For logs only. */
  internal?: string
  /** For the caller, instead of the table's sentence. */
  public?: string
  /** Further members of the uplink's problem document. */
  extra?: Record<string, unknown>
  fields?: FieldProblem[]
  cause?: unknown
}

export class AppError extends Error {
  readonly code: AppErrorCode
  readonly publicText: string
  readonly extra: Record<string, unknown>
  readonly fields: FieldProblem[]

  constructor(code: AppErrorCode, texts: AppErrorTexts = {}) {
    super(texts.internal ?? texts.public ?? errorTable[code].title, { cause: texts.cause })
    this.name = 'AppError'
    this.code = code
    this.publicText = texts.public ?? errorTable[code].title
    this.extra = texts.extra ?? {}
    this.fields = texts.fields ?? []
  }
}

function row(status: number, trpc: TRPC_ERROR_CODE_KEY, log: LogLevel, title: string): ErrorRow {
  return { status, trpc, log, title }
}
