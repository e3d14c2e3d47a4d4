import type { BootPhase } from '@bootfarm/proto/boot-phases'
import type { BootReport } from '@bootfarm/proto/uplink'
import { simProgram } from '../lab/programs.ts'
import { RunningProcess } from '../lab/running-process.ts'

/** One line of `bootfarm-sim boot --json`. */
export interface DeviceResult {
  mac: string
  outcome: 'ready' | 'failed'
  /** The reason of a failure. */
  text?: string
  readBytes: number
  repeats: number
  resumptions: number
  /** How often it failed over to another edge. */
  handOvers: number
  longestReadUs: number
}

/** The phases of a boot by PXE, iPXE and stream, in order. */
export const phasesOfPxeBoot: BootPhase[] = ['dhcp', 'nbp', 'loader', 'breather', 'stage2', 'ready']

/** Runs `bootfarm-sim boot` to its end. */
export async function bootDevices(
  args: string[],
  start = (program: string, all: string[]) => new RunningProcess(program, all),
): Promise<{ exit: number | string; devices: DeviceResult[]; output: string }> {
  const sim = start(simProgram, ['boot', '--json', ...args])
  const exit = await sim.ended
  return {
    exit,
    devices: [...sim.jsonLines<DeviceResult>()],
    output: sim.output,
  }
}

/**
 * Returns the boots that `bootfarm-edge serve --json` printed, each in its last form, once `count` of them fit `are`:
 * an edge prints a boot when it is over, and again when its device has reported its steps.
 */
export function printedBoots(
  edge: RunningProcess,
  count: number,
  are: (boot: BootReport) => boolean = ({ outcome }) => outcome !== undefined,
): Promise<BootReport[]> {
  const printed = () => edge.jsonLines<BootReport>()
  return edge.waitUntil(
    () => `${count} boots that fit, but\n${printed().map(summary).join('\n')}`,
    () => {
      const boots = [...new Map(printed().map((boot) => [boot.id, boot])).values()].filter(are)
      return boots.length >= count ? boots : undefined
    },
  )
}

/** Describes a boot in one line, for messages. */
export function summary({ mac, outcome, phases, guest }: BootReport): string {
  const steps = Map.groupBy(guest?.steps ?? [], ({ group }) => group)
  const counts = [...steps].map(([group, { length }]) => `${length} of ${group}`)
  return [
    `boot of ${mac}: ${JSON.stringify(outcome)}`,
    `phases ${phases.map(({ name }) => name).join(' ')}`,
    `steps ${counts.join(', ') || 'none'}`,
  ].join('; ')
}
