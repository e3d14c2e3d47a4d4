import { formatBytes } from '../../lib/format-quantity'
import type { VdiskDetail } from './version-types'

type WriteCache = VdiskDetail['writeCache']

/** Where `isServed` is false no edge does it yet: it is named where it is set, and not offered. */
export const cacheClasses: {
  value: WriteCache['class']
  label: string
  meaning: string
  isServed: boolean
}[] = [
  {
    value: 'device_ram',
    isServed: true,
    label: 'RAM of the device',
    meaning: 'Fastest. What was written is lost at each restart, and takes RAM from programs.',
  },
  {
    value: 'device_ram_overflow',
    isServed: false,
    label: 'RAM of the device, then the edge',
    meaning: 'As RAM, but what does not fit goes to its edge. Lost at each restart.',
  },
  {
    value: 'edge',
    isServed: true,
    label: 'the edge, until a restart',
    meaning: 'Takes no RAM of the device. Lost at each restart of the device, and when the edge restarts.',
  },
  {
    value: 'edge_persistent',
    isServed: true,
    label: 'the edge, kept',
    meaning:
      'Kept over restarts of the device and the edge. It belongs to one version: once the device is to boot another, it is refused and says so.',
  },
  {
    value: 'private',
    isServed: false,
    label: 'the image itself (private)',
    meaning: 'The device writes an image of its own that stays. New versions do not reach it.',
  },
]

export const fullMeaning =
  'When that is full, what does not fit is not written: programs are told that there is no space.'

export function writeCacheText({ class: chosen, limitBytes }: WriteCache): string[] {
  const place = cacheClasses.find(({ value }) => value === chosen)
  return [
    `Writes go to ${place?.label ?? chosen}. ${place?.meaning ?? ''}`,
    limitBytes === null
      ? 'Each device may write as much as there is room.'
      : `Each device may write ${formatBytes(limitBytes)}.`,
    ...(place?.isServed === false
      ? ['No edge does that yet: devices of this vDisk do not start, and say so.']
      : []),
    fullMeaning,
  ]
}
