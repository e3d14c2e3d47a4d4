import { formatBytes, formatDuration } from '../../lib/format-quantity'
import type { StopReason } from './send-steps'
import type { SendProgress } from './upload-sender'

export const busyText = 'This tab already sends another file. Wait for it, pause it, or use another tab.'

/** `34 %, 5.44 MiB of 16.0 MiB, 2.10 MiB/s, 5 s left`. */
export function progressText(
  { sentBytes, bytesPerSecond }: Pick<SendProgress, 'sentBytes' | 'bytesPerSecond'>,
  sizeBytes: number,
): string {
  const parts = [
    `${percentOf(sentBytes, sizeBytes)}\u00a0%`,
    `${formatBytes(sentBytes)} of ${formatBytes(sizeBytes)}`,
    ...(bytesPerSecond === null
      ? []
      : [`${formatBytes(bytesPerSecond)}/s`, `${timeLeft(sizeBytes - sentBytes, bytesPerSecond)} left`]),
  ]
  return parts.join(', ')
}

/** Rounded down: 100 only when all of it arrived. */
export function percentOf(sentBytes: number, sizeBytes: number): number {
  return Math.floor((sentBytes * 100) / Math.max(1, sizeBytes))
}

/** In whole seconds. */
function timeLeft(bytes: number, bytesPerSecond: number): string {
  const seconds = Math.max(1, Math.ceil(bytes / bytesPerSecond))
  return seconds < 60 ? `${seconds}\u00a0s` : formatDuration(seconds * 1e6)
}

const stopTexts: Record<StopReason, string> = {
  cut: 'The control plane does not respond. Continue when the connection is back.',
  'signed-out': 'Your session ended while the file was sent. What arrived is kept.',
  gone: 'The upload was deleted or has expired. Import the file again.',
  refused: 'The control plane refused the file.',
  unreadable: 'The browser could not read the file any more: it was changed, moved or deleted. Choose it again.',
  paused: 'Paused.',
}

/** Why it does not advance; null while it does. */
export function stopText({ phase, reason, detail }: SendProgress): string | null {
  if (phase === 'waiting') return detail ?? 'The connection to the control plane is lost. Trying again.'
  if (phase !== 'stopped' || reason === null) return null
  return (reason === 'refused' ? detail : null) ?? stopTexts[reason]
}
