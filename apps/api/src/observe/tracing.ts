import { randomBytes } from 'node:crypto'
import { type HrTime, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import {
  type AnsweredRequest,
  type AppliedReports,
  type EndedJob,
  noTelemetry,
  type Telemetry,
} from '../domain/telemetry.ts'
import { bootTrace, type PlainSpan } from './boot-trace.ts'

/** Spans beyond are dropped: a collector that is away costs no memory and holds up nobody. */
const queueMax = 2_048
const exportLimitMs = 5_000
const probes = new Set(['/healthz', '/readyz'])

export interface TracingSettings {
  /** Of the collector; `/v1/traces` follows. */
  endpoint: string
  serviceName: string
  version: string
}

export interface Tracing extends Telemetry {
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
    spanProcessors: [
      new BatchSpanProcessor({ exporter, maxQueueSize: queueMax, exportTimeoutMillis: exportLimitMs }),
    ],
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
    requestAnswered: (answered) => {
      if (!probes.has(answered.route)) send(requestSpan(answered), SpanKind.SERVER)
    },
    jobEnded: (ended) => send(jobSpan(ended), SpanKind.INTERNAL),
    reportsApplied({ endedBoots }: AppliedReports) {
      for (const ended of endedBoots)
        if (!ended.boot.generated) for (const span of bootTrace(ended)) send(span, SpanKind.INTERNAL)
    },
    flush: () => provider.forceFlush(),
    close: () => provider.shutdown().catch(() => undefined),
  }
}

function requestSpan({ route, method, status, durationMs }: AnsweredRequest): PlainSpan {
  return {
    ...endedNow(`${method} ${route}`, durationMs),
    attributes: {
      'http.request.method': method,
      'http.route': route,
      'http.response.status_code': status,
    },
    error: status >= 500 ? String(status) : null,
  }
}

function jobSpan({ job, durationMs, error }: EndedJob): PlainSpan {
  return {
    ...endedNow(`job ${job}`, durationMs),
    attributes: { 'bootfarm.job.queue': job },
    error: error === null ? null : 'failed',
  }
}

function endedNow(name: string, durationMs: number) {
  const endUs = Date.now() * 1000
  return {
    ...{ name, parentSpanId: null, endUs, startUs: endUs - Math.round(durationMs * 1000) },
    traceId: randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
  }
}

function hrTime(us: number): HrTime {
  return [Math.floor(us / 1e6), (us % 1e6) * 1000]
}
