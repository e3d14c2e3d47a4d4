import { type BootPath, tracePath } from '@bootfarm/proto/boot-path'
import type { BootDetail } from '../schema.ts'
import type { BootUsual } from '../usual-times.ts'

/** A boot as its files have it. */
export interface ExportedBoot {
  boot: BootDetail
  path: BootPath
  usual: BootUsual
  /** The span of the caller that ordered the start, as W3C Trace Context writes it. */
  startedBy: string | null
}

export function exportedBoot(boot: BootDetail, more: Omit<ExportedBoot, 'boot' | 'path'>): ExportedBoot {
  return { boot, path: tracePath(boot), ...more }
}

/**
 * Control characters, and those that turn the direction of text around: names come from devices and people, and files
 * are opened by programs that obey them.
 */
const unreadable = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

export function readable(text: string): string {
  return text.replace(unreadable, '\uFFFD')
}

/** The device's name, or its address. */
export function deviceOf({ deviceName, mac }: BootDetail): string {
  return readable(deviceName ?? mac)
}

/** A span of a boot below its root. `fromUs` is since the boot's first packet, and below 0 before it. */
export interface ExportedSpan {
  /** Tells spans apart, also in later exports of the same boot. */
  key: string
  track: 'phases' | 'critical path' | 'OS boot steps'
  name: string
  fromUs: number
  toUs: number
  attributes: Record<string, string | number>
}

/** What the edge saw, what the time belongs to, and what the device reported. */
export function spansOf({ boot, path }: ExportedBoot): ExportedSpan[] {
  const phases = boot.phases.map(
    ({ name, startUs, durationUs, source, bytesOut, bytesIn, retries, reads }): ExportedSpan => ({
      key: name,
      track: 'phases',
      name,
      fromUs: startUs,
      toUs: durationUs === null ? Math.max(startUs, boot.totalUs) : startUs + durationUs,
      attributes: {
        'bootfarm.phase.source': source,
        'bootfarm.phase.bytes_out': bytesOut,
        'bootfarm.phase.bytes_in': bytesIn,
        'bootfarm.phase.retries': retries,
        'bootfarm.phase.reads': reads,
      },
    }),
  )
  const segments = path.segments.map(
    ({ owner, fromUs, toUs, source, evidence }): ExportedSpan => ({
      key: `path:${fromUs}`,
      track: 'critical path',
      name: readable(owner.title),
      fromUs,
      toUs,
      attributes: {
        'bootfarm.path.owner': readable(owner.key),
        'bootfarm.path.source': source,
        'bootfarm.path.evidence': readable(evidence),
      },
    }),
  )
  const steps = (boot.guest?.steps ?? []).map(
    ({ group, name, startUs, durationUs }, index): ExportedSpan => ({
      key: `step:${index}`,
      track: 'OS boot steps',
      name: readable(name),
      fromUs: startUs,
      toUs: Math.min(Number.MAX_SAFE_INTEGER, startUs + durationUs),
      attributes: { 'bootfarm.step.group': group },
    }),
  )
  return [...phases, ...segments, ...steps]
}
