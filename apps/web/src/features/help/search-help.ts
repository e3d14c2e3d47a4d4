import type { HelpSection } from './help-doc'

/** What the index needs of a page. */
export interface HelpTitles {
  path: string
  title: string
  sections: HelpSection[]
}

export interface HelpHit {
  href: string
  title: string
  /** The page of a section; null for a page. */
  page: string | null
}

const hitsMax = 40

/** Finds pages and sections whose titles have all of the words, or their beginnings; pages first. */
export function searchHelp(docs: readonly HelpTitles[], search: string): HelpHit[] {
  const words = wordsOf(search)
  if (words.length === 0) return []
  const has = (title: string) => {
    const there = wordsOf(title)
    return words.every((word) => there.some((one) => one.startsWith(word)))
  }
  const pages = docs.filter(({ title }) => has(title))
  const sections = docs.flatMap(({ path, title: page, sections }) =>
    sections
      .filter(({ title }) => has(title))
      .map(({ title, anchor }) => ({ href: `/help/${path}#${anchor}`, title, page })),
  )
  const hits = [...pages.map(({ path, title }) => ({ href: `/help/${path}`, title, page: null })), ...sections]
  return hits.slice(0, hitsMax)
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}
