/**
 * Returns a heading as it reads inside a sentence: `Boots` becomes `boots`; `vDisks` and `API keys` stay as they are.
 */
export function inSentence(heading: string): string {
  return /^[A-Z][a-z]/.test(heading) ? heading.charAt(0).toLowerCase() + heading.slice(1) : heading
}
