import type { EndedQuery } from '@bootfarm/db'
import { type HrTime, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { type AppliedReports, noTelemetry, type Telemetry } from '../../rules/telemetry.ts'
import {
  activeTrace,
  type EndedSpan,
  newTraceContext,
  type OpenSpan,
  type TraceContext,
  type Tracer,
} from '../../rules/tracer.ts'
import { bootTrace, type PlainSpan } from './boot-trace.ts'
import { statementName } from './statement-name.ts'

/** Spans beyond this are dropped: an unavailable collector costs no memory and delays nothing. */
const queueMax = 2_048
const exportLimitMs = 5_000
/** Per request or job; of further ones only the number is reported. */
const queriesMax = 500
const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL }

export interface TracingSettings {
  /** URL of the collector; `/v1/traces` follows. */
  endpoint: string
  serviceName: string
  version: string
}

export interface Tracing extends Telemetry, Tracer {
  /** Called in the asynchronous context of the requester; queries outside of any span are not reported. */
  queryEnded(ended: EndedQuery): void
  /** Sends what waits. */
  flush(): Promise<void>
  /** Sends what waits, at most for some seconds, and ends. */
  close(): Promise<void>
}

/** Spans by OTLP/HTTP with JSON. Loaded only where an endpoint is set. */
export function startTracing({ endpoint, serviceName, version }: TracingSettings): Tracing {
  let nextIds: Pick<PlainSpan, 'traceId' | 'spanId'> = { traceId: '', spanId: '' }
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    timeoutMillis: exportLimitMs,
  })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': serviceName, 'service.version': version }),
    // A span takes its ids while it is started, before anything else runs.
    idGenerator: { generateTraceId: () => nextIds.traceId, generateSpanId: () => nextIds.spanId },
    spanProcessors: [new BatchSpanProcessor({ exporter, maxQueueSize: queueMax, exportTimeoutMillis: exportLimitMs })],
  })
  const tracer = provider.getTracer('bootfarm')
  const send = (span: PlainSpan, kind: SpanKind): void => {
    const { traceId, spanId, parentSpanId } = span
    nextIds = { traceId, spanId }
    const parent = parentSpanId === null ? null : { traceId, spanId: parentSpanId, traceFlags: 1 }
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
    const { name, attributes } = span
    const started = tracer.startSpan(name, { kind, startTime: hrTime(span.startUs), attributes }, context)
    if (span.error !== null) started.setStatus({ code: SpanStatusCode.ERROR, message: span.error })
    started.end(hrTime(span.endUs))
  }
  return {
    ...noTelemetry,
    start: (kind, parent) => new Span(parent, (span) => send(span, kinds[kind])),
    queryEnded(ended) {
      const parent = activeTrace()
      if (parent instanceof Span && parent.isSampled && parent.begun.mayHaveQuery())
        send(querySpan(ended, parent), SpanKind.CLIENT)
    },
    reportsApplied({ endedBoots }: AppliedReports) {
      for (const ended of endedBoots)
        if (!ended.boot.generated) for (const span of bootTrace(ended)) send(span, SpanKind.INTERNAL)
    },
    flush: () => provider.forceFlush(),
    close: () => provider.shutdown().catch(() => undefined),
  }
}

/** Spans that started in this process: they have one clock, which nobody sets meanwhile. */
class Begun {
  readonly #unixUs = Date.now() * 1000
  readonly #monotonicMs = performance.now()
  queryCount = 0

  /** @param monotonicMs as `performance.now()` has it @returns µs since 1970 */
  unixUs(monotonicMs: number): number {
    return this.#unixUs + Math.round((monotonicMs - this.#monotonicMs) * 1000)
  }

  mayHaveQuery(): boolean {
    this.queryCount += 1
    return this.queryCount <= queriesMax
  }
}

class Span implements OpenSpan {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
  readonly begun: Begun
  readonly #parent: TraceContext | null
  readonly #beginMs = performance.now()
  readonly #send: (span: PlainSpan) => void

  constructor(parent: TraceContext | null, send: (span: PlainSpan) => void) {
    const { traceId, spanId, isSampled } = newTraceContext(parent)
    this.traceId = traceId
    this.spanId = spanId
    this.isSampled = isSampled
    this.begun = parent instanceof Span ? parent.begun : new Begun()
    this.#parent = parent
    this.#send = send
  }

  end({ name, attributes = {}, error }: EndedSpan): void {
    if (!this.isSampled) return
    const { traceId, spanId, begun } = this
    const isFirst = !(this.#parent instanceof Span)
    this.#send({
      name,
      traceId,
      spanId,
      parentSpanId: this.#parent?.spanId ?? null,
      error,
      startUs: begun.unixUs(this.#beginMs),
      endUs: begun.unixUs(performance.now()),
      attributes: {
        ...attributes,
        ...(isFirst && begun.queryCount > 0 ? { 'bootfarm.db.query_count': begun.queryCount } : {}),
      },
    })
  }
}

function querySpan({ text, beginMs, durationMs, waitMs, isFailed }: EndedQuery, parent: Span): PlainSpan {
  const { operation, table } = statementName(text)
  return {
    name: table === null ? operation : `${operation} ${table}`,
    traceId: parent.traceId,
    spanId: newTraceContext(parent).spanId,
    parentSpanId: parent.spanId,
    startUs: parent.begun.unixUs(beginMs),
    endUs: parent.begun.unixUs(beginMs + durationMs),
    attributes: {
      'db.system.name': 'postgresql',
      'db.operation.name': operation,
      ...(table === null ? {} : { 'db.collection.name': table }),
      'bootfarm.db.wait_ms': Math.round(waitMs * 1000) / 1000,
    },
    error: isFailed ? 'failed' : null,
  }
}

function hrTime(us: number): HrTime {
  return [Math.floor(us / 1e6), (us % 1e6) * 1000]
}
