import type { BootReport } from '@bootfarm/proto/uplink'
import { parseBootSetting } from '../rules/boot-settings.ts'

/** Reads of the boot profile's own documents, which no limit cuts. */
const documentReadsMax = 16

/**
 * Why a boot that was given these settings did not have them, as far as its edge can tell: a device with an initramfs
 * of an earlier release ignores words that it does not know. Null: nothing says so. Pure.
 */
export function departureOf(
  { cipher, mtu, readAhead, handOver, phases }: BootReport,
  settings: readonly string[],
): string | null {
  if (handOver) return 'it failed over to another edge'
  for (const text of settings) {
    const setting = parseBootSetting(text)
    if (setting?.name === 'stream' && setting.value === 'clear' && cipher !== undefined && cipher !== 'clear')
      return 'its stream was encrypted: start the edge with --clear to allow others'
    if (setting?.name === 'stream' && setting.value === 'sealed' && cipher === 'clear')
      return 'its stream was not encrypted'
    if (setting?.name === 'mtu' && mtu !== undefined && mtu > Number(setting.value))
      return `its packets had ${mtu} bytes: update the initramfs of its version`
    if (setting?.name === 'read-ahead' && setting.value === 'off' && (readAhead?.askedBytes ?? 0) > 0)
      return 'it read ahead: update the initramfs of its version'
    if (setting?.name === 'read-limit' && setting.value !== 'off') {
      const limit = Number(setting.value.slice(0, -1)) * 1024
      if (readsAbove(phases, limit) > documentReadsMax)
        return 'it read more at once: update the initramfs of its version'
    }
  }
  return null
}

/** Reads that were certainly longer. Index i of the sizes counts those in (2^(i+8), 2^(i+9)] bytes. */
function readsAbove(phases: BootReport['phases'], limit: number): number {
  return phases
    .flatMap(({ readSizes = [] }) => readSizes.map((reads, index) => (2 ** (index + 8) >= limit ? reads : 0)))
    .reduce((sum, reads) => sum + reads, 0)
}
