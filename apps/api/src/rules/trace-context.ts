import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'

/** A span that goes on, as W3C Trace Context names it (https://www.w3.org/TR/trace-context/). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string
  /** 16 hexadecimal digits. */
  spanId: string
  /** False where who began the trace wants none of it collected. */
  isSampled: boolean
}

/** Version 00, and what later ones have in common with it. */
const header = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const sampledFlag = 1
const active = new AsyncLocalStorage<TraceContext>()

/**
 * What a caller's `traceparent` names; null for none, and for one that is not well-formed: its trace begins here then.
 */
export function parseTraceparent(text: unknown): TraceContext | null {
  const [, version = '', traceId = '', spanId = '', flags = '', rest] =
    (typeof text === 'string' && header.exec(text)) || []
  if (!version || version === 'ff' || (version === '00' && rest !== undefined)) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & sampledFlag) !== 0 }
}

export function traceparentOf({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** A span below `parent`, or the first of a trace. */
export function newTraceContext(parent: TraceContext | null): TraceContext {
  return {
    traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    isSampled: parent?.isSampled ?? true,
  }
}

/** Whatever `work` begins belongs to this span, until it has one of its own. */
export function runInTrace<T, Span extends TraceContext>(span: Span, work: () => T): T {
  return active.run(span, work)
}

/** The span that goes on here; null where nobody collects traces. */
export function activeTrace(): TraceContext | null {
  return active.getStore() ?? null
}

/** For who is told of what happens here; null where nobody collects traces. */
export function activeTraceparent(): string | null {
  const trace = activeTrace()
  return trace && traceparentOf(trace)
}
