import { outcomeOfReport } from '../../rules/boot-outcome.ts'
import { bootSpanId, bootTraceId } from '../../rules/boot-span-ids.ts'
import type { EndedBoot } from '../../rules/telemetry.ts'

/** A span as traces know it, before anything of OpenTelemetry. */
export interface PlainSpan {
  name: string
  traceId: string
  spanId: string
  /** Null for the first of a trace. */
  parentSpanId: string | null
  /** µs since 1970. */
  startUs: number
  endUs: number
  attributes: Record<string, string | number | boolean>
  /** Null where it went well. */
  error: string | null
}

/**
 * A boot as a trace: the boot, and below it each phase whose start and end the edge observed. Outcomes and
 * causes are our own words; it contains no text of a device.
 */
export function bootTrace({ boot, startedAt, organizationId, siteId, edgeId }: EndedBoot): PlainSpan[] {
  const traceId = bootTraceId(boot.id)
  const beginUs = startedAt.getTime() * 1000
  const { outcome } = boot
  const failedPhase = outcome && 'phase' in outcome ? outcome.phase : null
  const cause = outcome?.kind === 'failed' ? outcome.cause : outcome?.kind === 'silent' ? 'silent' : null
  const ids = {
    'bootfarm.organization.id': organizationId,
    'bootfarm.site.id': siteId,
    'bootfarm.edge.id': edgeId,
    'bootfarm.boot.id': boot.id,
  }
  const root = bootSpanId(boot.id, 'boot')
  const phases = boot.phases.map(
    ({ name, startUs, durationUs = 0, source, bytesOut, bytesIn, retries, reads }): PlainSpan => ({
      name,
      traceId,
      spanId: bootSpanId(boot.id, name),
      parentSpanId: root,
      startUs: beginUs + startUs,
      endUs: beginUs + startUs + durationUs,
      attributes: {
        ...ids,
        'bootfarm.phase.source': source,
        'bootfarm.phase.bytes_out': bytesOut,
        'bootfarm.phase.bytes_in': bytesIn,
        'bootfarm.phase.retries': retries,
        'bootfarm.phase.reads': reads,
      },
      error: name === failedPhase ? cause : null,
    }),
  )
  return [
    {
      name: 'boot',
      traceId,
      spanId: root,
      parentSpanId: null,
      startUs: Math.min(beginUs, ...phases.map(({ startUs }) => startUs)),
      endUs: Math.max(beginUs, ...phases.map(({ endUs }) => endUs)),
      attributes: {
        ...ids,
        'bootfarm.boot.outcome': outcomeOfReport(boot) ?? 'none',
        'bootfarm.boot.simulated': boot.simulated,
        'bootfarm.boot.reconnects': boot.reconnects,
        ...(cause ? { 'bootfarm.boot.cause': cause } : {}),
        ...(boot.deviceId ? { 'bootfarm.device.id': boot.deviceId } : {}),
        ...(boot.vdiskId ? { 'bootfarm.vdisk.id': boot.vdiskId } : {}),
        ...(boot.versionId ? { 'bootfarm.version.id': boot.versionId } : {}),
      },
      error: cause,
    },
    ...phases,
  ]
}
