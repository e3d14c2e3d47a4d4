import { AppError } from '../errors/app-error.ts'

/** Why object stores fail, in words for people: codes of Node's files and sockets, and names of S3's errors. */
const reasons: Record<string, string> = {
  ENOSPC: 'its disk is full',
  EDQUOT: 'its disk is full',
  EACCES: 'the control plane may not use its directory',
  EPERM: 'the control plane may not use its directory',
  EROFS: 'its disk can only be read',
  EIO: 'its disk has an error',
  ENOTDIR: 'its directory is not one',
  ECONNREFUSED: 'it cannot be reached',
  ECONNRESET: 'it ended the connection',
  EPIPE: 'it ended the connection',
  ENOTFOUND: 'its name is not known',
  EAI_AGAIN: 'its name cannot be looked up',
  ETIMEDOUT: 'it did not answer in time',
  TimeoutError: 'it did not answer in time',
  AbortError: 'it did not answer in time',
  ABORT_ERR: 'it did not answer in time',
  NoSuchBucket: 'its bucket does not exist',
  AccessDenied: 'it does not allow it with these keys',
  InvalidAccessKeyId: 'it does not know the access key',
  // Of Versity's gateway.
  XAdminUserNotFound: 'it does not know the access key',
  XAmzContentSHA256Mismatch: 'it got other bytes than were sent',
  SignatureDoesNotMatch: 'the secret key is not the one of the access key',
  CredentialsProviderError: 'no keys are set for it',
  RequestTimeTooSkewed: 'its clock and the one of the control plane differ',
  PermanentRedirect: 'its bucket lies in another region',
  AuthorizationHeaderMalformed: 'its bucket lies in another region',
  SlowDown: 'it is too busy',
  QuotaExceeded: 'it is full',
  InsufficientStorage: 'it is full',
}

/** What a store was asked to do, as metrics name it. */
export type ObjectOperation = 'put' | 'get' | 'list' | 'delete'

/** @param what "take piece 3" */
export function objectTrouble(what: string, error: unknown): AppError {
  return new AppError('unavailable', {
    public: `The object store of the control plane could not ${what}: ${reasonOf(error)}. It is tried again.`,
    internal: `the object store could not ${what}: ${error instanceof Error ? `${error.name}: ${error.message}` : error}`,
    cause: error,
  })
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const status = statusOf(error)
  return (
    reasons[code] ??
    reasons[error.name] ??
    (status !== null && status >= 400 ? `it answered with HTTP status ${status}` : 'it answered wrongly')
  )
}

function statusOf(error: Error): number | null {
  const metadata = '$metadata' in error ? error.$metadata : null
  if (typeof metadata !== 'object' || metadata === null || !('httpStatusCode' in metadata)) return null
  return typeof metadata.httpStatusCode === 'number' ? metadata.httpStatusCode : null
}
