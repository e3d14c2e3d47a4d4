import { formatBytes } from '../../lib/format-quantity'
import type { VdiskDetail } from './version-types'

type WriteCache = VdiskDetail['writeCache']

export const cacheClasses: {
  value: WriteCache['class']
  label: string
  meaning: string
}[] = [
  {
    value: 'device_ram',
    label: 'device RAM',
    meaning: 'Fastest. Writes reduce the RAM available to programs and are discarded at reboot.',
  },
  {
    value: 'device_ram_overflow',
    label: 'device RAM, then the edge',
    meaning:
      'Writes use half of the RAM (or as set by bootfarm.overlay= on the kernel command line), then the edge. Discarded at reboot. The limit applies to writes on the edge.',
  },
  {
    value: 'device_ram_local_disk',
    label: 'device RAM, then a local disk',
    meaning:
      'Writes use half of the RAM (or as set by bootfarm.overlay= on the kernel command line), then the local disk partition named bootfarm-cache. Nothing else on the device’s disks is touched. A device without this partition does not boot and reports why. Discarded at reboot. The limit applies to writes on the local disk.',
  },
  {
    value: 'edge',
    label: 'edge disk, discarded at reboot',
    meaning: 'Uses no device RAM. Discarded when the device or the edge restarts.',
  },
  {
    value: 'edge_persistent',
    label: 'edge disk, persistent',
    meaning:
      'Kept when the device or the edge restarts. It belongs to one version: if the device is assigned another version, it does not boot and reports why.',
  },
  {
    value: 'private',
    label: 'private image',
    meaning:
      'Each device has its own persistent image on its edge. It does not receive new versions until you reset it on the device’s page.',
  },
]

export const fullChoices: { value: WriteCache['full']; label: string; meaning: string }[] = [
  {
    value: 'stop',
    label: 'Stop the device’s disk',
    meaning: 'The disk stops and the boot reports why, so no program continues with half-written files.',
  },
  {
    value: 'read_only',
    label: 'Make the disk read-only',
    meaning: 'The operating system receives an error for each write. Writing works again after a restart.',
  },
]

/** In the device's own RAM its system alone decides. */
export const fullInRam = 'When full, writes fail with “no space left” until space is freed.'

function fullText({ class: chosen, full }: Pick<WriteCache, 'class' | 'full'>): string {
  if (chosen === 'device_ram') return fullInRam
  const choice = fullChoices.find(({ value }) => value === full)
  return `When full: ${choice?.label.toLowerCase()}. ${choice?.meaning}`
}

const overflowPlaces: Partial<Record<WriteCache['class'], string>> = {
  device_ram_overflow: ' to the edge',
  device_ram_local_disk: ' to the local disk',
}

function limitText({ class: chosen, limitBytes }: Pick<WriteCache, 'class' | 'limitBytes'>): string {
  const place = overflowPlaces[chosen] ?? ''
  return limitBytes === null
    ? `Each device may write${place} until no space is left.`
    : `Each device may write ${formatBytes(limitBytes)}${place}.`
}

export function writeCacheText({ class: chosen, limitBytes, full }: WriteCache): string[] {
  const place = cacheClasses.find(({ value }) => value === chosen)
  return [
    `Location: ${place?.label ?? chosen}. ${place?.meaning ?? ''}`,
    ...(chosen === 'device_ram' ? [] : [limitText({ class: chosen, limitBytes })]),
    fullText({ class: chosen, full }),
  ]
}

const mebibyteBytes = 1024 ** 2
/** Like the API: with less, a device would stop before it has booted. */
const limitMibMin = 16
/** Like the API: no disk is larger. */
const limitMibMax = 64 * 1024 ** 2

export const limitHint = `At least ${limitMibMin}. Leave empty for no limit.`

/** For a form: as people write it, in MiB. */
export function limitMib(limitBytes: number | null): string {
  return limitBytes === null ? '' : String(limitBytes / mebibyteBytes)
}

/** The value in the form, or its error. */
export function readLimit(text: string): { limitBytes: number | null } | { problem: string } {
  if (text.trim() === '') return { limitBytes: null }
  const mib = Number(text)
  if (Number.isNaN(mib))
    return { problem: `“${text.trim()}” is not a number. Enter MiB without a unit, for example 2048 for 2 GiB.` }
  if (mib < limitMibMin)
    return { problem: `Enter at least ${limitMibMin}. With less, a device stops before it has booted.` }
  if (mib > limitMibMax) return { problem: `Enter at most ${limitMibMax} (64 TiB), or leave empty for no limit.` }
  return { limitBytes: Math.round(mib * mebibyteBytes) }
}
