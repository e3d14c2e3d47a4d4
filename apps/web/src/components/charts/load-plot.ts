/** What numbers are formatted for if the browser names no language that `Intl` takes. */
const otherLanguage = 'en'

/** A language that `Intl` takes: `en-US` for `en-US@posix`, which browsers name in the locale C of POSIX. */
export function validLanguage(language: string): string {
  const [tag = ''] = language.replaceAll('_', '-').split(/[@.]/)
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? otherLanguage
  } catch {
    return otherLanguage
  }
}

/** uPlot makes a number format for the browser's language as it is loaded, and fails if `Intl` refuses that. */
export async function loadPlot() {
  const language = validLanguage(navigator.language)
  if (language !== navigator.language) Object.defineProperty(navigator, 'language', { value: language })
  return (await import('uplot')).default
}
