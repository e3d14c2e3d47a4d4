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
    label: 'the device’s RAM',
    meaning: 'Fastest. What was written takes RAM from programs, and is lost at each restart.',
  },
  {
    value: 'device_ram_overflow',
    label: 'the device’s RAM, then the edge',
    meaning:
      'Half of the RAM (or as bootfarm.overlay= on the command line says) takes writes, and what does not fit goes to the edge. Lost at each restart; the limit is of what goes to the edge.',
  },
  {
    value: 'device_ram_local_disk',
    label: 'the device’s RAM, then a disk of its own',
    meaning:
      'Half of the RAM (or as bootfarm.overlay= on the command line says) takes writes, and what does not fit goes to the partition of a local disk that is named bootfarm-cache; nothing else of the device’s disks is touched. A device without one does not start, and says so. Lost at each restart; the limit is of what goes to the disk.',
  },
  {
    value: 'edge',
    label: 'the edge, until a restart',
    meaning: 'Takes no RAM of the device. Lost at each restart of the device, and when the edge restarts.',
  },
  {
    value: 'edge_persistent',
    label: 'the edge, kept',
    meaning:
      'Kept over restarts of the device and the edge. It belongs to one version: once the device is to boot another, it is refused and says so.',
  },
  {
    value: 'private',
    label: 'an image of its own (private)',
    meaning:
      'Each device has one at its edge, and it stays. New versions do not reach it until it is reset on the device’s page.',
  },
]

/** What a device does whose write cache is full. */
export const fullChoices: { value: WriteCache['full']; label: string; meaning: string }[] = [
  {
    value: 'stop',
    label: 'is stopped',
    meaning: 'Its disk stands still and its boot says why, so that no program goes on with half of its files written.',
  },
  {
    value: 'read_only',
    label: 'goes on, and writes nothing any more',
    meaning: 'Its system is told of each write that it failed. It can write again after a restart.',
  },
]

/** In the device's own RAM its system alone decides. */
export const fullInRam =
  'When the device’s room for writes is full, its system tells programs that there is no space, and goes on once something is deleted.'

function fullText({ class: chosen, full }: Pick<WriteCache, 'class' | 'full'>): string {
  if (chosen === 'device_ram') return fullInRam
  const choice = fullChoices.find(({ value }) => value === full)
  return `A device whose write cache is full ${choice?.label}. ${choice?.meaning}`
}

const overflowPlaces: Partial<Record<WriteCache['class'], string>> = {
  device_ram_overflow: ' to its edge',
  device_ram_local_disk: ' to its own disk',
}

function limitText({ class: chosen, limitBytes }: Pick<WriteCache, 'class' | 'limitBytes'>): string {
  const place = overflowPlaces[chosen] ?? ''
  return limitBytes === null
    ? `Each device may write as much${place} as there is room for.`
    : `Each device may write ${formatBytes(limitBytes)}${place}.`
}

export function writeCacheText({ class: chosen, limitBytes, full }: WriteCache): string[] {
  const place = cacheClasses.find(({ value }) => value === chosen)
  return [
    `Writes go to ${place?.label ?? chosen}. ${place?.meaning ?? ''}`,
    ...(chosen === 'device_ram' ? [] : [limitText({ class: chosen, limitBytes })]),
    fullText({ class: chosen, full }),
  ]
}

const mebibyteBytes = 1024 ** 2
/** As the API has it: below, a device would stop before it has booted. */
const limitMibMin = 16
/** As the API has it: no disk is larger. */
const limitMibMax = 64 * 1024 ** 2

export const limitHint = `At least ${limitMibMin}; empty: as much as there is room for.`

/** For a form: as people write it, in MiB. */
export function limitMib(limitBytes: number | null): string {
  return limitBytes === null ? '' : String(limitBytes / mebibyteBytes)
}

/** Of what is written in the form, or what is wrong with it. */
export function readLimit(text: string): { limitBytes: number | null } | { problem: string } {
  if (text.trim() === '') return { limitBytes: null }
  const mib = Number(text)
  if (Number.isNaN(mib)) return { problem: `“${text.trim()}” is no number: write MiB alone, e.g. 2048 for 2 GiB.` }
  if (mib < limitMibMin)
    return { problem: `Write at least ${limitMibMin}: with less a device would stop before it has booted.` }
  if (mib > limitMibMax)
    return { problem: `At most ${limitMibMax} (64 TiB); leave it empty for as much as there is room for.` }
  return { limitBytes: Math.round(mib * mebibyteBytes) }
}
