import type { BootOutcome, BootPhase, valueSources } from '../boot-phases.ts'

/** The part of a boot that its critical path is derived from. Times are µs since the boot's first packet. */

export type ValueSource = (typeof valueSources)[number]

export interface TracedPhase {
  name: BootPhase
  startUs: number
  /** Null while the phase lasts, and if its end was never observed. */
  durationUs: number | null
  source: ValueSource
  retries: number
  missingFragments: number
  reads: number
  bytesOut: number
  /** Silences over 250 ms. */
  gaps: readonly { atUs: number; durationUs: number }[]
}

export type LoaderStepName = 'dhcp' | 'script' | 'kernel' | 'initrd' | 'other'

export interface TracedStep {
  group: 'firmware' | 'kernel' | 'initramfs' | 'system' | 'unit'
  /** Chosen by the device. */
  name: string
  startUs: number
  durationUs: number
}

export interface TracedBoot {
  outcome: BootOutcome | null
  totalUs: number
  phases: readonly TracedPhase[]
  guest: { kernelStartUs: number; steps: readonly TracedStep[] } | null
  offers: readonly { atUs: number; server: string; ours: boolean; kind: 'address' | 'proxy' | 'both' }[]
  routerWait: { atUs: number; durationUs: number; solicitations: number } | null
  loaderSteps: readonly { name: LoaderStepName; startUs: number; durationUs: number | null }[]
  /** When the loader's script said that it starts the kernel; null: unknown. */
  bootCommandUs: number | null
  /** Files that the device loaded; it chose their names. */
  transfers: readonly { name: string; startUs: number; bytes: number }[]
  handOver: { atUs: number } | null
  menuEntry: string | null
  readTimes: {
    wait: { sumUs: number } | null
    phases: readonly { name: 'initramfs' | 'system'; wait: { sumUs: number } | null }[]
  } | null
}

/** Limits what a boot from anywhere can cost; reports are within them. */
export const phasesMax = 8
export const stepsMax = 24
export const gapsMax = 8
export const offersMax = 8
export const loaderStepsMax = 5
export const transfersMax = 24
