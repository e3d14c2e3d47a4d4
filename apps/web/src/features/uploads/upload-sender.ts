import { type RateSample, rateOf, withSample } from './send-rate'
import { type Answer, afterAnswer, firstState, type NextStep, type SendState, type StopReason } from './send-steps'

/** A piece is made to take two seconds. */
const pieceLimitMs = 90_000
/** The API may read the whole file once for its SHA-256 before it answers the last one. */
const lastPieceLimitMs = 15 * 60_000

export interface UploadTarget {
  id: string
  vdiskId: string
}

export interface SendProgress {
  phase: 'sending' | 'waiting' | 'stopped' | 'complete'
  sentBytes: number
  bytesPerSecond: number | null
  /** Where it stopped. */
  reason: StopReason | null
  /** The control plane's words about the last refusal. */
  detail: string | null
}

interface SenderOptions {
  upload: UploadTarget
  file: File
  /** Bytes that arrived before. */
  sentBytes: number
  onProgress: (progress: SendProgress) => void
}

/**
 * Sends a file in pieces to an upload, and continues after cuts. The browser reads each piece as it sends it: the tab
 * holds none of it.
 */
export class UploadSender {
  readonly #options: SenderOptions
  #state: SendState = firstState
  #samples: RateSample[] = []
  #ended = new AbortController()
  /** Ends a wait. */
  #wake: () => void = () => undefined

  constructor(options: SenderOptions) {
    this.#options = options
    this.#state = { ...firstState, offset: options.sentBytes }
  }

  /** Resolves with whether all bytes arrived. Call it again to continue after a stop. */
  async run(): Promise<boolean> {
    this.#ended = new AbortController()
    const { signal } = this.#ended
    this.#samples = []
    this.#state = { ...this.#state, failures: 0 }
    const wakeUp = () => this.retryNow()
    window.addEventListener('online', wakeUp)
    try {
      return await this.#send(signal)
    } finally {
      window.removeEventListener('online', wakeUp)
    }
  }

  /** What arrived of the last piece stays. */
  pause(): void {
    this.#ended.abort()
    this.#wake()
  }

  /** Ends a wait for the control plane. */
  retryNow(): void {
    this.#wake()
  }

  async #send(signal: AbortSignal): Promise<boolean> {
    // The API knows where it is, also after a pause and after a reload.
    let next: NextStep = { kind: 'ask', afterMs: 0 }
    this.#tell('sending')
    for (;;) {
      if (signal.aborted) next = { kind: 'stop', reason: 'paused', detail: null }
      if (next.kind === 'complete') {
        this.#tell('complete')
        return true
      }
      if (next.kind === 'stop') {
        this.#tell('stopped', next)
        return false
      }
      if (next.kind === 'ask' && next.afterMs > 0) await this.#wait(next.afterMs)
      if (!signal.aborted) next = await (next.kind === 'ask' ? this.#ask(signal) : this.#sendPiece(signal))
    }
  }

  async #ask(signal: AbortSignal): Promise<NextStep> {
    const answer = await exchange(this.#options.upload, { method: 'HEAD' }, { signal, limitMs: pieceLimitMs })
    return this.#take(answer, null)
  }

  async #sendPiece(signal: AbortSignal): Promise<NextStep> {
    const { upload, file } = this.#options
    const { offset, pieceSize } = this.#state
    const end = Math.min(file.size, offset + pieceSize)
    const bytes = file.slice(offset, end)
    const startedAtMs = performance.now()
    const headers = { 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset) }
    const limitMs = end === file.size ? lastPieceLimitMs : pieceLimitMs
    const answer = await exchange(upload, { method: 'PATCH', headers, body: bytes }, { signal, limitMs })
    // A file that was changed or removed ends the request as a lost connection does.
    if (answer === 'cut' && !(await isReadable(bytes))) return { kind: 'stop', reason: 'unreadable', detail: null }
    return this.#take(answer, { bytes: bytes.size, ms: performance.now() - startedAtMs })
  }

  #take(answer: Answer | 'cut', sent: { bytes: number; ms: number } | null): NextStep {
    const { file } = this.#options
    const { state, next } = afterAnswer(this.#state, answer, { sizeBytes: file.size, sent })
    this.#state = state
    if (next.kind === 'send') {
      this.#samples = withSample(this.#samples, { atMs: performance.now(), offset: state.offset })
      this.#tell('sending')
    } else if (next.kind === 'ask') this.#tell('waiting', { detail: answer === 'cut' ? null : answer.detail })
    return next
  }

  async #wait(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = () => undefined
  }

  #tell(phase: SendProgress['phase'], why: { reason?: StopReason; detail?: string | null } = {}): void {
    const { reason = null, detail = null } = why
    const bytesPerSecond = phase === 'sending' ? rateOf(this.#samples) : null
    this.#options.onProgress({ phase, sentBytes: this.#state.offset, bytesPerSecond, reason, detail })
  }
}

function isReadable(bytes: Blob): Promise<boolean> {
  return bytes
    .slice(0, 1)
    .arrayBuffer()
    .then(
      () => true,
      () => false,
    )
}

async function exchange(
  { vdiskId, id }: UploadTarget,
  request: RequestInit,
  { signal, limitMs }: { signal: AbortSignal; limitMs: number },
): Promise<Answer | 'cut'> {
  const ending = AbortSignal.any([signal, AbortSignal.timeout(limitMs)])
  const init: RequestInit = { cache: 'no-store', signal: ending }
  try {
    const answer = await fetch(`/api/v1/vdisks/${vdiskId}/uploads/${id}/bytes`, Object.assign(init, request))
    const problem: unknown = answer.ok ? null : await answer.json().catch(() => null)
    const told = answer.headers.get('upload-offset') ?? fieldOf(problem, 'receivedBytes')
    const detail = fieldOf(problem, 'detail')
    return {
      status: answer.status,
      offset: told === undefined || told === null ? null : Number(told),
      detail: typeof detail === 'string' ? detail : null,
    }
  } catch {
    return 'cut'
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
