import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'

/** `server`: a request to us; `client`: a request from us. */
type SpanKind = 'server' | 'client' | 'internal'

export interface EndedSpan {
  /** From a set that the build knows: routes, procedures, jobs. */
  name: string
  attributes?: Record<string, string | number | boolean>
  /** Null where it went well. */
  error: string | null
}

export interface OpenSpan extends TraceContext {
  end(ended: EndedSpan): void
}

/** The collector of traces. No call throws or waits. */
export interface Tracer {
  /** A span that begins now, below `parent` or as the first one of a trace. */
  start(kind: SpanKind, parent: TraceContext | null): OpenSpan
}

/** Without a span if no traces are collected. */
export function within<T>(span: OpenSpan | undefined, work: () => T): T {
  return span ? runInTrace(span, work) : work()
}

/** Runs `work` as a span of this name below the current one. An error is recorded without its content. */
export async function traced<T>(tracer: Tracer | undefined, name: string, work: () => Promise<T>): Promise<T> {
  const span = tracer?.start('internal', activeTrace())
  try {
    const result = await within(span, work)
    span?.end({ name, error: null })
    return result
  } catch (error) {
    span?.end({ name, error: 'failed' })
    throw error
  }
}

/** A span that continues, as W3C Trace Context names it (https://www.w3.org/TR/trace-context/). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string
  /** 16 hexadecimal digits. */
  spanId: string
  /** False if the trace's origin does not want it collected. */
  isSampled: boolean
}

/** Version 00, and what later ones have in common with it. */
const header = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const sampledFlag = 1
const active = new AsyncLocalStorage<TraceContext>()

/**
 * Returns the span that a caller's `traceparent` names; null for none, and for a malformed one: its trace then starts
 * here.
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

/** Spans that start in `work` belong to this span. */
export function runInTrace<T, Span extends TraceContext>(span: Span, work: () => T): T {
  return active.run(span, work)
}

/** Returns the current span; null if no traces are collected. */
export function activeTrace(): TraceContext | null {
  return active.getStore() ?? null
}

/** Returns the `traceparent` for services that are called from here; null if no traces are collected. */
export function activeTraceparent(): string | null {
  const trace = activeTrace()
  return trace && traceparentOf(trace)
}
