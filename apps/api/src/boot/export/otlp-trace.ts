import { bootSpanId, bootTraceId } from '../../rules/boot-span-ids.ts'
import { parseTraceparent } from '../../rules/tracer.ts'
import { deviceOf, type ExportedBoot, spansOf } from './exported-boot.ts'

/**
 * A boot as a trace in the JSON encoding of OpenTelemetry's protocol
 * (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): ids in hexadecimal digits, 64-bit numbers as
 * strings, enumerations as numbers. A collector accepts it at /v1/traces.
 */
export function otlpTrace(exported: ExportedBoot): object {
  const { boot, path } = exported
  const traceId = bootTraceId(boot.id)
  const root = bootSpanId(boot.id, 'boot')
  const startedNs = BigInt(Date.parse(boot.startedAt)) * 1_000_000n
  const spans = spansOf(exported)
  const span = (spanId: string, { name, fromUs, toUs, attributes }: Timed) => ({
    traceId,
    spanId,
    name,
    kind: spanKindInternal,
    startTimeUnixNano: instantOf(startedNs, fromUs),
    endTimeUnixNano: instantOf(startedNs, Math.max(fromUs, toUs)),
    attributes: attributesOf(attributes),
  })
  const whole = { name: 'boot', fromUs: Math.min(0, ...spans.map(({ fromUs }) => fromUs)), toUs: path.totalUs }
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': 'bootfarm-boot', 'host.name': deviceOf(boot) }) },
        scopeSpans: [
          {
            scope: { name: 'bootfarm' },
            spans: [
              {
                ...span(root, Object.assign(whole, { attributes: bootAttributes(exported) })),
                status: statusOf(exported),
                links: linksOf(exported),
              },
              ...spans.map((one) => ({ ...span(bootSpanId(boot.id, one.key), one), parentSpanId: root })),
            ],
          },
        ],
      },
    ],
  }
}

const spanKindInternal = 1
const statusUnset = 0
const statusError = 2

interface Timed {
  name: string
  fromUs: number
  toUs: number
  attributes: Attributes
}

type Attributes = Record<string, string | number | boolean>

/** No instant is before 1970: the edge's wall clock may be wrong. */
function instantOf(startedNs: bigint, us: number): string {
  const ns = startedNs + BigInt(us) * 1000n
  return String(ns < 0n ? 0n : ns)
}

function attributesOf(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: otlpValue(value) }))
}

function otlpValue(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value }
  return typeof value === 'boolean' ? { boolValue: value } : { intValue: String(value) }
}

function bootAttributes({ boot, path }: ExportedBoot): Attributes {
  const ids = {
    'bootfarm.boot.id': boot.id,
    'bootfarm.boot.outcome': boot.outcome ?? 'none',
    'bootfarm.boot.simulated': boot.simulated,
    'bootfarm.boot.inferred_us': path.inferredUs,
    'bootfarm.site.id': boot.siteId,
    'bootfarm.edge.id': boot.edgeId,
  }
  return Object.assign(
    ids,
    boot.failedCause ? { 'bootfarm.boot.cause': boot.failedCause } : {},
    boot.deviceId ? { 'bootfarm.device.id': boot.deviceId } : {},
    boot.vdisk ? { 'bootfarm.vdisk.id': boot.vdisk.id } : {},
  )
}

/** The boot is a trace of its own, since it begins with the device; it links to the span that ordered the start. */
function linksOf({ startedBy }: ExportedBoot): object[] {
  const cause = parseTraceparent(startedBy)
  return cause ? [{ traceId: cause.traceId, spanId: cause.spanId }] : []
}

function statusOf({ boot: { outcome, failedCause } }: ExportedBoot): object {
  if (outcome !== 'failed' && outcome !== 'silent') return { code: statusUnset }
  return { code: statusError, message: failedCause ?? outcome }
}
