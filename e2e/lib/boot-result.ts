import type { BootPhase } from '@bootfarm/proto/boot-phases'
import type { BootReport } from '@bootfarm/proto/uplink'
import { simProgram } from './programs.ts'
import { RunningProcess } from './running-process.ts'

/** One line of `bootfarm-sim boot --json`. */
export interface DeviceResult {
  mac: string
  outcome: 'ready' | 'failed'
  /** Why it failed. */
  text?: string
  readBytes: number
  repeats: number
  resumptions: number
}

/** Phases that a boot by PXE, iPXE and stream has, in their order. */
export const phasesOfPxeBoot: BootPhase[] = ['dhcp', 'nbp', 'loader', 'breather', 'stage2', 'ready']

/** Runs `bootfarm-sim boot` to its end. */
export async function bootDevices(
  args: string[],
  wrap: (command: string, ...args: string[]) => [string, string[]] = (command, ...rest) => [command, rest],
): Promise<{ exit: number | string; devices: DeviceResult[]; output: string }> {
  const sim = new RunningProcess(...wrap(simProgram, 'boot', '--json', ...args))
  const exit = await sim.ended
  return {
    exit,
    devices: sim.jsonLines<DeviceResult>(),
    output: sim.output,
  }
}

/** The boots that `bootfarm-edge serve --json` printed, once there are `count`. */
export async function printedBoots(edge: RunningProcess, count: number): Promise<BootReport[]> {
  for (;;) {
    const boots = edge.jsonLines<BootReport>().filter((line) => line.outcome !== undefined)
    if (boots.length >= count) return boots
    const known = boots.length
    await edge.waitFor(new RegExp(`(?:"outcome":[^\\n]*\\n[^]*?){${known + 1}}`))
  }
}
