import { deviceOf, type ExportedBoot, type ExportedSpan, spansOf } from './exported-boot.ts'

const threads: ExportedSpan['track'][] = ['phases', 'critical path', 'OS boot steps']
const processId = 1

/**
 * A boot in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open: a track for what the edge saw, one
 * for what the time belongs to, one for what the device reported. Times are µs since the earliest of them.
 */
export function perfettoTrace(exported: ExportedBoot): object {
  const { boot } = exported
  const spans = spansOf(exported)
  const beginUs = Math.min(0, ...spans.map(({ fromUs }) => fromUs))
  const named = (name: string, args: object, thread?: number) => ({
    name,
    ph: 'M',
    pid: processId,
    ...(thread === undefined ? {} : { tid: thread }),
    args,
  })
  return {
    displayTimeUnit: 'ms',
    otherData: { bootId: boot.id, startedAt: boot.startedAt, outcome: boot.outcome ?? 'none' },
    traceEvents: [
      named('process_name', { name: `Boot of ${deviceOf(boot)}` }),
      ...threads.map((name, thread) => named('thread_name', { name }, thread + 1)),
      ...spans.map(({ track, name, fromUs, toUs, attributes }) => ({
        name,
        cat: track,
        ph: 'X',
        pid: processId,
        tid: threads.indexOf(track) + 1,
        ts: fromUs - beginUs,
        dur: Math.max(0, toUs - fromUs),
        args: attributes,
      })),
    ],
  }
}
