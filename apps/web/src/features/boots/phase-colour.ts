import type { BootPhase } from '@bootfarm/proto/boot-phases'

/** Night to morning: the colours of globals.css in the order of the chain. */
export function phaseColour(name: BootPhase): string {
  return `var(--phase-${name})`
}
