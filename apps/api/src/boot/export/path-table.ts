import { csvLine } from '../../rules/csv.ts'
import { type ExportedBoot, readable } from './exported-boot.ts'

/** Without it, spreadsheets take UTF-8 for something else. */
const byteOrderMark = '\uFEFF'
const heading = ['track', 'name', 'source', 'startUs', 'durationUs', 'percent', 'evidence']

/** A boot for spreadsheets: its critical path, its phases, transfers and the device's own steps, a line each. */
export function pathTable({ boot, path }: ExportedBoot): string {
  const percent = (us: number) => Number(((us / Math.max(1, path.totalUs)) * 100).toFixed(3))
  const lines = [
    ...path.segments.map(({ owner, fromUs, toUs, source, evidence }) => [
      'critical path',
      readable(owner.title),
      source,
      fromUs,
      toUs - fromUs,
      percent(toUs - fromUs),
      readable(evidence),
    ]),
    ...boot.phases.map(({ name, source, startUs, durationUs }) => [
      'phase',
      name,
      source,
      startUs,
      durationUs,
      durationUs === null ? null : percent(durationUs),
      null,
    ]),
    ...boot.transfers.map(({ name, protocol, startUs, durationUs, bytes, retransmitted, outcome }) => [
      `${protocol} transfer`,
      readable(name),
      'observed',
      startUs,
      durationUs,
      percent(durationUs),
      `${bytes} bytes, ${retransmitted} retransmitted, ${outcome ?? 'not finished'}`,
    ]),
    ...(boot.guest?.steps ?? []).map(({ group, name, startUs, durationUs }) => [
      `${group} step`,
      readable(name),
      'reported',
      startUs,
      durationUs,
      percent(durationUs),
      null,
    ]),
  ]
  return byteOrderMark + [heading, ...lines].map(csvLine).join('')
}
