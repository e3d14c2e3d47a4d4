import type { BootCause } from '@bootfarm/proto/boot-phases'
import type { RunningProcess } from '../lab/running-process.ts'

/** What `bootfarm-edge serve` printed of a boot that failed. */
export interface PrintedFailure {
  phase: string
  cause: BootCause
  /** Of the device, or of what the edge saw; empty where there is none. */
  text: string
  /** All that was printed of the boot. */
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
