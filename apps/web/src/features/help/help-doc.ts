import { lexer, type MarkedToken } from 'marked'

/** A page of the documentation, as its Markdown is. */
export interface HelpDoc {
  /** `guides/operations`, which is also its address below `/help/`. */
  path: string
  title: string
  sections: HelpSection[]
  /** Without the title. */
  blocks: HelpBlock[]
}

export interface HelpSection {
  title: string
  anchor: string
  /** 2: a section; 3: a part of one. */
  depth: number
}

export interface HelpBlock {
  token: MarkedToken
  /** Of a heading; null for everything else. */
  anchor: string | null
}

export const helpFolders = ['guides', 'reference'] as const

export function parseHelp(path: string, markdown: string): HelpDoc {
  // Everything that the lexer makes without extensions is of these types.
  const tokens = lexer(markdown) as MarkedToken[]
  const anchors = new Anchors()
  const blocks = tokens.map((token): HelpBlock => {
    return { token, anchor: token.type === 'heading' ? anchors.next(plainText(token)) : null }
  })
  const [first] = blocks
  const title = first?.token.type === 'heading' && first.token.depth === 1 ? plainText(first.token) : null
  if (title === null) throw new Error(`docs/${path}.md has to begin with its title: "# Title".`)
  const sections = blocks
    .slice(1)
    .flatMap(({ token, anchor }) =>
      token.type === 'heading' && anchor !== null ? [{ title: plainText(token), anchor, depth: token.depth }] : [],
    )
  return { path, title, sections, blocks: blocks.slice(1) }
}

/** Anchors as GitHub makes them, so that a link works there and here. */
class Anchors {
  #used = new Map<string, number>()

  next(title: string): string {
    const anchor = title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-')
    const before = this.#used.get(anchor) ?? 0
    this.#used.set(anchor, before + 1)
    return before === 0 ? anchor : `${anchor}-${before}`
  }
}

/** What a person reads of a token, without its marks. */
export function plainText(token: MarkedToken): string {
  if ('tokens' in token && token.tokens) return token.tokens.map((inner) => plainText(inner as MarkedToken)).join('')
  return 'text' in token ? token.text : ''
}

/**
 * Where a link of a page leads: to another page, to another site, or nowhere (null), since the dashboard serves no
 * other file of the repository.
 */
export function helpHref(path: string, href: string): string | null {
  const here = new URL(`https://help.invalid/${path}.md`)
  const url = URL.canParse(href, here) ? new URL(href, here) : null
  if (!url) return null
  if (url.origin !== here.origin) return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null
  const [, folder = '', name] = /^\/([a-z]+)\/([a-z0-9-]+)\.md$/.exec(url.pathname) ?? []
  const isServed = helpFolders.some((known) => known === folder)
  return isServed ? `/help/${folder}/${name}${url.hash}` : null
}
