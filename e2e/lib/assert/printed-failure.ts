import type { BootCause } from '@bootfarm/proto/boot-phases'
import type { RunningProcess } from '../lab/running-process.ts'

/** The failed boot that `bootfarm-edge serve` printed. */
export interface PrintedFailure {
  phase: string
  cause: BootCause
  /** The device's own words, or the edge's observation; empty without either. */
  text: string
  /** Everything that was printed about the boot. */
  whole: string
}

/** Waits until the edge has printed the failed boot of this device. */
export async function printedFailure(edge: RunningProcess, mac: string): Promise<PrintedFailure> {
  const pattern = new RegExp(
    `^boot \\S+  ${mac}.*  failed in (\\w+): (\\w+)(?: "(.*)")?.*\\n(?:  .*\\n)*?  last packet from this edge: .*\\n`,
    'm',
  )
  const [whole, phase = '', cause = '', text = ''] = await edge.waitFor(pattern)
  return { phase, cause: cause as BootCause, text, whole }
}
