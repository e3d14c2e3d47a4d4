import { activeTrace, runInTrace, type TraceContext } from './trace-context.ts'

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
