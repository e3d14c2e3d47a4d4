import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: { stringValue?: string; intValue?: string | number } }[]
  status: { code?: number; message?: string }
}
interface OtlpExport {
  resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[]
}

export interface TraceCollector {
  url: string
  /** The spans received so far. */
  spans: OtlpSpan[]
  close(): Promise<void>
}

/** Takes OTLP/HTTP with JSON and keeps the spans. */
export async function startTraceCollector(): Promise<TraceCollector> {
  const spans: OtlpSpan[] = []
  const server = createServer(async (request, reply) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = JSON.parse(Buffer.concat(chunks).toString()) as OtlpExport
    for (const { scopeSpans } of body.resourceSpans)
      for (const scope of scopeSpans) if (request.url === '/v1/traces') spans.push(...scope.spans)
    reply.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    spans,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

export function spanAttributes(span: OtlpSpan): Record<string, string | number | undefined> {
  return Object.fromEntries(span.attributes.map(({ key, value }) => [key, Object.values(value)[0]]))
}

export function isWithin(inner: OtlpSpan, outer: OtlpSpan): boolean {
  return (
    BigInt(inner.startTimeUnixNano) >= BigInt(outer.startTimeUnixNano) &&
    BigInt(inner.endTimeUnixNano) <= BigInt(outer.endTimeUnixNano)
  )
}
