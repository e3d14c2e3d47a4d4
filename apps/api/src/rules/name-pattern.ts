import { z } from 'zod'

/**
 * Names for adopted devices: text with `{n}`, a number from 1 on (`{nnn}`: with zeros in front, at least three digits),
 * or `{mac}`, the MAC address with hyphens. Only what every system takes as a host name, so that no encoder is ever
 * needed.
 */

export const deviceNameSizeMax = 63
const nameForm = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/
const placeholder = /\{(n{1,6}|mac)\}/g
/** Numbers tried for one name. A site has far fewer devices. */
const numbersMax = 1_000_000

export const namePattern = z
  .string()
  .trim()
  .superRefine((text, context) => {
    const problem = patternProblem(text)
    if (problem) context.addIssue({ code: 'custom', message: problem })
  })

/** One sentence, or null if the pattern can be used. */
function patternProblem(pattern: string): string | null {
  const longest = expand(pattern, { mac: '00:00:00:00:00:00', number: numbersMax })
  if (pattern === '') return 'Enter a name, or a pattern such as lab-{nn}.'
  if (/[{}]/.test(longest)) return 'Unknown placeholder. Use {n}, {nn}, … or {mac}.'
  if (longest.length > deviceNameSizeMax) return `This pattern makes names longer than ${deviceNameSizeMax} characters.`
  if (!nameForm.test(longest))
    return 'A name consists of letters, digits, hyphens, dots and underscores, and begins and ends with a letter or digit.'
  return null
}

/** Returns whether it gives each device a different name. */
export function namesMany(pattern: string): boolean {
  return pattern.search(placeholder) >= 0
}

/**
 * The pattern's first name that is not taken: the least number for `{n}`; without a number the name itself, then with
 * -2, -3 behind it. The caller adds it to `taken`.
 */
export function nameOf(pattern: string, mac: string, taken: ReadonlySet<string>): string {
  const isNumbered = /\{n+\}/.test(pattern)
  for (let number = 1; number < numbersMax; number++) {
    const name = expand(pattern, { mac, number })
    const free = isNumbered || number === 1 ? name : `${name.slice(0, deviceNameSizeMax - 7)}-${number}`
    if (!taken.has(free)) return free
  }
  throw new Error(`all names of ${pattern} are taken`)
}

/** Returns the name for a device: its host name, otherwise its MAC address. */
export function suggestedName(
  { hostName, mac }: { hostName: string | null; mac: string },
  taken: ReadonlySet<string>,
): string {
  const own = (hostName ?? '').toLowerCase()
  const byMac = expand('{mac}', { mac, number: 0 })
  return nameForm.test(own) && own.length <= deviceNameSizeMax && !taken.has(own) ? own : byMac
}

function expand(pattern: string, { mac, number }: { mac: string; number: number }): string {
  return pattern.replace(placeholder, (_whole, word: string) =>
    word === 'mac' ? mac.replaceAll(':', '-') : String(number).padStart(word.length, '0'),
  )
}
