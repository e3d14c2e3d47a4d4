import { formatBytes } from '../../lib/format-quantity'
import type { VdiskDetail } from './version-types'

type WriteCache = VdiskDetail['writeCache']

export const cacheClasses: { value: WriteCache['class']; label: string; meaning: string }[] = [
  {
    value: 'device_ram',
    label: 'RAM of the device',
    meaning: 'Fastest. What was written is lost at each restart, and takes RAM from programs.',
  },
  {
    value: 'device_ram_overflow',
    label: 'RAM of the device, then the edge',
    meaning: 'As RAM, but what does not fit goes to its edge. Lost at each restart.',
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
    label: 'the image itself (private)',
    meaning: 'The device writes an image of its own that stays. New versions do not reach it.',
  },
]

export const fullChoices: { value: WriteCache['full']; label: string; meaning: string }[] = [
  {
    value: 'stop',
    label: 'the device stops, with the cause',
    meaning: 'Nothing is written that is not kept; the device says why it stopped.',
  },
  {
    value: 'read_only',
    label: 'the device goes on read-only',
    meaning: 'Programs that write get an error; what was written so far stays.',
  },
]

export function writeCacheText({ class: chosen, limitBytes, full }: WriteCache): string[] {
  const place = cacheClasses.find(({ value }) => value === chosen)
  const end = fullChoices.find(({ value }) => value === full)
  return [
    `Writes go to ${place?.label ?? chosen}. ${place?.meaning ?? ''}`,
    limitBytes === null
      ? 'Each device may write as much as there is room.'
      : `Each device may write ${formatBytes(limitBytes)}.`,
    `When that is full, ${end?.label ?? full}.`,
  ]
}
