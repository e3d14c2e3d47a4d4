/** Joins class names; leaves out anything that is not a non-empty string. */
export function classNames(...parts: (string | false | null | undefined)[]): string {
  return parts.filter(Boolean).join(' ')
}
