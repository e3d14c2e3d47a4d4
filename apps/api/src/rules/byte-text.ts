/** Sizes for people, in sentences of errors: 1 KiB is 1024 B. */
export function byteText(bytes: number): string {
  const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB']
  if (bytes < 1024) return `${bytes} B`
  let value = bytes / 1024
  let index = 0
  while (value >= 1023.95 && index < units.length - 1) {
    value /= 1024
    index += 1
  }
  return `${value.toFixed(1)} ${units[index]}`
}
