/** Names and values as people write them: one `NAME=value` per line. */

export function linesOfPairs(pairs: Record<string, string>): string {
  return Object.entries(pairs)
    .map(([name, value]) => `${name}=${value}`)
    .join('\n')
}

/** Null where a line has no `=`. A name that is written twice has the last value. */
export function pairsOfLines(text: string): Record<string, string> | null {
  const pairs: Record<string, string> = {}
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === '') continue
    const at = line.indexOf('=')
    if (at < 1) return null
    pairs[line.slice(0, at).trim()] = line.slice(at + 1)
  }
  return pairs
}

/** Words between commas. */
export function tagsOfText(text: string): string[] {
  return text
    .split(',')
    .map((tag) => tag.trim())
    .filter(Boolean)
}
