import { formatBytes } from '../../lib/format-quantity'
import type { RouterOutputs } from '../../lib/trpc'

export type Capture = NonNullable<RouterOutputs['diskCapture']['get']['capture']>

const ends: Capture['state'][] = ['done', 'failed', 'cancelled']

export function isActive({ state }: Pick<Capture, 'state'>): boolean {
  return !ends.includes(state)
}

/** What happens, and what is to be done about it. */
export function captureText(capture: Capture, deviceName: string): string {
  const { state, question, edge, vdisk, version, copied } = capture
  const target = version && vdisk ? `version ${version.number} of ${vdisk.name}` : 'a version'
  switch (state) {
    case 'preparing':
      return `${edge.name} makes an empty disk, which takes no space.`
    case 'waiting':
      return capture.sizeBytes === null
        ? `Boot ${deviceName} from the network. Its first boot says how large the disk is; it then boots once more by itself.`
        : `Waiting for ${deviceName} to boot from the network.`
    case 'copying':
      if (copied && copied.bytes === copied.totalBytes)
        return `Everything is copied into ${target}. Waiting for ${deviceName} to switch itself off.`
      return `${deviceName} copies its disk into ${target}.`
    case 'asking':
      return question === 'disk'
        ? `${deviceName} has several disks. Name the one to capture.`
        : 'Everything is copied, but the version could not be sealed with the kernel on the disk.'
    case 'sealing':
      return `${edge.name} seals ${target}.`
    case 'undoing':
      return `What was copied is deleted once ${deviceName} is off: switch it off if it still runs. It boots as before from now on.`
    case 'done':
      return `The disk is captured as ${target}, which is in test.`
    case 'failed':
      return capture.reason ?? 'The capture failed.'
    case 'cancelled':
      return capture.reason ?? 'The capture was cancelled. Nothing of it is left.'
  }
}

/** How far the copy is; null where that is not known. It may be whole before all bytes of the disk are counted. */
export function copiedText({ copied, sizeBytes, state }: Capture): string | null {
  if (state !== 'copying') return null
  if (!copied)
    return sizeBytes === null ? null : `a disk of ${formatBytes(sizeBytes)}; how far it is was not reported yet`
  const { bytes, totalBytes, bytesPerSecond } = copied
  const speed = bytesPerSecond === null ? '' : `, ${formatBytes(bytesPerSecond)}/s`
  return `${formatBytes(bytes)} kept of a disk of ${formatBytes(totalBytes)}${speed}; zeros are not sent`
}
