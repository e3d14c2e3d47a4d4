/**
 * A serial console's text is arbitrary output of a machine, its firmware and its guests: never trusted, and full of
 * sequences that only a terminal understands.
 */

/** Longer lines are cut. */
const lineLengthMax = 1000

// biome-ignore-start lint/suspicious/noControlCharactersInRegex: they are what is taken out
/**
 * ECMA-48: CSI with its parameters, OSC and other strings up to their terminator, two-byte sequences with
 * intermediates.
 */
const escapeSequences =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]?/g
/** C0 but for tab, DEL, C1, line and paragraph separators, and what turns the direction of text around. */
const controlCharacters =
  /[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff]/g
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: they are what is taken out
/** The kernel prints its command line, and the boot's token with it. */
const secrets = /(bootfarm\.token=)[^\s"']+/g

const tab = '    '

/**
 * Returns one line as text for people: what a terminal shows after its last carriage return, without control
 * characters.
 */
export function readableConsoleText(raw: string): string {
  const plain = raw.replace(escapeSequences, '')
  const segments = plain.split('\r').filter((segment) => segment.trim() !== '')
  const text = (segments.at(-1) ?? '')
    .replaceAll('\t', tab)
    .replace(controlCharacters, '')
    .replace(secrets, '$1…')
    .trimEnd()
  return text.length > lineLengthMax ? `${text.slice(0, lineLengthMax)}…` : text
}

export interface ConsoleLine {
  /** By the clock of the machine that keeps the console. */
  atUnixMs: number
  text: string
}

const keptLine = /^(\d{1,15}) (.*)$/s

/** Reads `UNIX_MS<space>text`; null for anything else. */
export function parseConsoleLine(line: string): ConsoleLine | null {
  const match = keptLine.exec(line)
  if (!match) return null
  return { atUnixMs: Number(match[1]), text: readableConsoleText(match[2] ?? '') }
}
