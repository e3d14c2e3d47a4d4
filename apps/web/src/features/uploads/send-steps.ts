/**
 * Decides what the sender of an upload does next: the piece that follows, another look at the offset, a wait, or the
 * end. Pure: `upload-sender.ts` sends and waits.
 */

/** A piece of the size that the line carries in this time shows progress, and little is sent twice after a cut. */
const pieceMs = 2000
const pieceSizeFirst = 1 << 20
const pieceSizeMin = 128 * 1024
/** The API takes 64 MiB; larger pieces than this are no faster, and lose more in a cut. */
const pieceSizeMax = 32 << 20
const backoffFirstMs = 1000
const backoffMaxMs = 30_000
/** Tries without progress: about ten minutes. */
const failuresMax = 24

export interface SendState {
  /** Bytes that the API holds, as far as this side knows. */
  offset: number
  pieceSize: number
  /** Tries since the last progress. */
  failures: number
}

/** The API's answer to a piece, or to the question for the offset. */
export interface Answer {
  status: number
  /** Bytes that it holds, where it says so. */
  offset: number | null
  /** Its sentence about a refusal. */
  detail: string | null
}

export type StopReason = 'cut' | 'signed-out' | 'gone' | 'refused' | 'unreadable' | 'paused'

export type NextStep =
  | { kind: 'send' }
  /** A look at the offset after this time: what arrived of the last piece counts. */
  | { kind: 'ask'; afterMs: number }
  | { kind: 'complete' }
  | { kind: 'stop'; reason: StopReason; detail: string | null }

export const firstState: SendState = { offset: 0, pieceSize: pieceSizeFirst, failures: 0 }

/** @param sent the size of the piece and how long it took; null for a question for the offset */
export function afterAnswer(
  state: SendState,
  answer: Answer | 'cut',
  { sizeBytes, sent }: { sizeBytes: number; sent: { bytes: number; ms: number } | null },
): { state: SendState; next: NextStep } {
  if (answer === 'cut') return again(state, null)
  const { status, offset, detail } = answer
  if (status === 200 || status === 204) {
    if (offset === null || offset > sizeBytes)
      return stop(state, 'refused', 'The answer of the control plane has no offset.')
    const isProgress = sent !== null || offset > state.offset
    const after = {
      offset,
      pieceSize: sent ? nextPieceSize(state.pieceSize, sent) : state.pieceSize,
      failures: isProgress ? 0 : state.failures,
    }
    // The answer to the last piece alone says that the upload is complete; a piece may be empty.
    return { state: after, next: sent && offset === sizeBytes ? { kind: 'complete' } : { kind: 'send' } }
  }
  // The bytes of an earlier try arrived after the look at the offset.
  if (status === 409 && offset !== null) return again({ ...state, offset }, detail)
  if (status === 401) return stop(state, 'signed-out', detail)
  if (status === 404) return stop(state, 'gone', detail)
  // 400: the piece was cut between the dashboard and the API. 429: too many at once.
  if (status === 400 || status === 408 || status === 429 || status >= 500) return again(state, detail)
  return stop(state, 'refused', detail)
}

function stop(state: SendState, reason: StopReason, detail: string | null): { state: SendState; next: NextStep } {
  return { state, next: { kind: 'stop', reason, detail } }
}

function again(state: SendState, detail: string | null): { state: SendState; next: NextStep } {
  const failures = state.failures + 1
  const after = { ...state, failures, pieceSize: Math.max(pieceSizeMin, state.pieceSize / 2) }
  if (failures >= failuresMax) return stop(after, 'cut', detail)
  return { state: after, next: { kind: 'ask', afterMs: Math.min(backoffMaxMs, backoffFirstMs * 2 ** (failures - 1)) } }
}

/** At most twice or half of the last one: a single measure says little. */
function nextPieceSize(size: number, sent: { bytes: number; ms: number }): number {
  // The last piece of a file is short, and says nothing about larger ones.
  if (sent.bytes < size) return size
  const factor = Math.min(2, Math.max(0.5, pieceMs / Math.max(1, sent.ms)))
  return Math.round(Math.min(pieceSizeMax, Math.max(pieceSizeMin, size * factor)))
}
