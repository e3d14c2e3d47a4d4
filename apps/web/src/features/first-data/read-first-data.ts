import { type DehydratedState, dehydrate } from '@tanstack/react-query'
import { TRPCClientError } from '@trpc/client'
import { firstDataLimitMs } from '../../env'
import { type ApiReader, openReader } from './api-reader'
import { pageRequest } from './page-request'
import { readShell } from './read-shell'

export interface FirstReader extends ApiReader {
  /** The clock of the page. */
  now: Date
  /** Resolves once later changes will be sent to the browser: read boots, and what boots change, after it. */
  watched: Promise<void>
}

/**
 * Reads what a page shows first, if it is being opened. An answer that fails or is late is left out, as if nobody had
 * asked for it: the page then shows how it loads, and its own errors.
 */
export async function readFirstData(read: (reader: FirstReader) => Promise<unknown>): Promise<DehydratedState | null> {
  const { asker, isDocument, paint, startedAtMs } = await pageRequest()
  if (!isDocument || asker.cookie === '') return null
  const limitMs = firstDataLimitMs()
  const limit = AbortSignal.timeout(Math.max(0, Math.ceil(limitMs - (performance.now() - startedAtMs))))
  const reader = openReader(asker, limit)
  const watched = readShell().then(({ kind }) => {
    if (kind !== 'signed-in') throw new Error(kind)
  })
  // It is heard of by those who wait for it; a page may end before.
  watched.catch(() => undefined)
  // What was refused is left out like what was late.
  await read(Object.assign(reader, { now: new Date(paint.now), watched })).catch(() => undefined)
  const errors = reader.queryClient
    .getQueryCache()
    .getAll()
    .map(({ state }) => state.error)
  const unanswered = errors.find((error) => error instanceof TRPCClientError && error.data?.code === undefined)
  if (limit.aborted) console.error(`first data: the API took more than ${limitMs} ms`)
  else if (unanswered) console.error('first data:', unanswered.cause ?? unanswered.message)
  return dehydrate(reader.queryClient)
}
