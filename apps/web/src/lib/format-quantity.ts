/** Numbers for people. A no-break space precedes the unit, so that a value never wraps away from it. */

const space = '\u00a0'
const secondUs = 1_000_000
const minuteUs = 60 * secondUs
const hourUs = 60 * minuteUs
const dayUs = 24 * hourUs

/** @param us microseconds, at least 0; three digits that count, in µs, ms or s, then whole units from a minute on */
export function formatDuration(us: number): string {
  if (us < 1000) return `${Math.round(us)}${space}µs`
  if (us < 999_500) return `${threeDigits(us / 1000)}${space}ms`
  if (us < 59_950_000) return `${threeDigits(us / secondUs)}${space}s`
  const seconds = Math.round(us / secondUs)
  if (us < hourUs) return inTwoUnits(seconds, 60, 'min', 's')
  if (us < dayUs) return inTwoUnits(Math.round(seconds / 60), 60, 'h', 'min')
  return inTwoUnits(Math.round(seconds / 3600), 24, 'd', 'h')
}

/** A point on an axis of time: as a duration, with a minus before 0. */
export function formatOffset(us: number): string {
  return us < 0 ? `−${formatDuration(-us)}` : formatDuration(us)
}

/** @param ms a difference of two clocks, with its sign */
export function formatClockOffset(ms: number): string {
  if (ms === 0) return `±0${space}ms`
  return `${ms < 0 ? '−' : '+'}${formatDuration(Math.abs(ms) * 1000)}`
}

/** Binary units, as block sizes are: 1 KiB is 1024 B. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes}${space}B`
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  let value = bytes / 1024
  let index = 0
  while (value >= 999.5 && index < units.length - 1) {
    value /= 1024
    index += 1
  }
  return `${threeDigits(value)}${space}${units[index]}`
}

export function formatCount(count: number): string {
  return count.toLocaleString('en')
}

/** `1 boot`, `2 boots`. */
export function countOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`
}

function threeDigits(value: number): string {
  if (value < 9.995) return value.toFixed(2)
  return value < 99.95 ? value.toFixed(1) : value.toFixed(0)
}

function inTwoUnits(small: number, perBig: number, bigUnit: string, smallUnit: string): string {
  const rest = small % perBig
  const big = `${Math.floor(small / perBig)}${space}${bigUnit}`
  return rest === 0 ? big : `${big} ${rest}${space}${smallUnit}`
}
