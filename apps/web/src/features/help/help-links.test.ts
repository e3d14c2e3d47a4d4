import { join } from 'node:path'
import { bootCauses } from '@bootfarm/proto/boot-phases'
import { describe, expect, test } from 'vitest'
import { helpHref, parseHelp, plainText } from './help-doc'
import { causeHelp, helpTopics } from './help-links'
import { readHelp } from './read-help'
import { searchHelp } from './search-help'

const docs = readHelp(join(import.meta.dirname, '../../../../../docs'))

/** What a link has to lead to; null: it does. */
function problemOf(link: string): string | null {
  const [path = '', anchor] = link.replace(/^\/help\//, '').split('#')
  const doc = docs.get(path)
  if (!doc) return `${link}: no such page`
  return anchor === undefined || doc.sections.some((section) => section.anchor === anchor) ? null : `${link}: no anchor`
}

test('every help link of a page leads to a section that exists', () => {
  const links = [...Object.values(helpTopics), ...Object.values(causeHelp)]
  expect(links.flatMap((link) => problemOf(link) ?? [])).toEqual([])
  expect(Object.keys(causeHelp)).toEqual([...bootCauses])
})

test('every link between pages of the documentation leads to a section that exists', () => {
  const links = [...docs.values()].flatMap(({ path, blocks }) =>
    [...JSON.stringify(blocks).matchAll(/"type":"link","raw":.*?"href":"([^"]*)"/g)].map(([, href = '']) => ({
      path,
      href,
    })),
  )
  expect(links.length).toBeGreaterThan(100)
  const inside = links.flatMap(({ path, href }) => {
    const target = helpHref(path, href)
    return target?.startsWith('/help/') ? [{ path, problem: problemOf(target) }] : []
  })
  expect(inside.length).toBeGreaterThan(30)
  expect(inside.filter(({ problem }) => problem !== null)).toEqual([])
})

describe('a page', () => {
  test('has its title, its sections, and anchors as GitHub makes them', () => {
    const { title, sections } = parseHelp(
      'guides/x',
      "# A `b`\n\ntext\n\n## An edge's *disk*: what, if?\n\n### Same\n\n## Same\n",
    )
    expect(title).toBe('A b')
    expect(sections).toEqual([
      { title: "An edge's disk: what, if?", anchor: 'an-edges-disk-what-if', depth: 2 },
      { title: 'Same', anchor: 'same', depth: 3 },
      { title: 'Same', anchor: 'same-1', depth: 2 },
    ])
    expect(() => parseHelp('guides/x', 'no title')).toThrow('docs/guides/x.md has to begin with its title')
  })

  test('keeps what looks like HTML as text', () => {
    const { blocks } = parseHelp('guides/x', '# T\n\na < b & `<c>` "d"\n\n<script>alert(1)</script>\n')
    const texts = blocks.map(({ token }) => plainText(token).trim()).filter((text) => text !== '')
    expect(texts).toEqual(['a < b & <c> "d"', '<script>alert(1)</script>'])
  })

  test('leads to other pages and to other sites only', () => {
    const href = (link: string) => helpHref('guides/images', link)
    expect(href('versions.md')).toBe('/help/guides/versions')
    expect(href('../reference/boot-flow.md#what-is-counted')).toBe('/help/reference/boot-flow#what-is-counted')
    expect(href('#formats')).toBe('/help/guides/images#formats')
    expect(href('https://example.org/a')).toBe('https://example.org/a')
    for (const link of [
      '../security.md',
      '../decisions/0001-uplink-without-clocks.md',
      'javascript:alert(1)',
      '../../x.md',
    ])
      expect(href(link)).toBeNull()
  })
})

test('titles are found by the beginnings of their words, pages first', () => {
  const found = searchHelp([...docs.values()], 'boot fail').map(({ href }) => href)
  expect(found).toContain('/help/guides/operations#why-a-boot-failed')
  const [first] = searchHelp([...docs.values()], 'write caches')
  expect(first).toEqual({ href: '/help/guides/write-caches', title: 'Write caches', page: null })
  expect(searchHelp([...docs.values()], '  ')).toEqual([])
  expect(searchHelp([...docs.values()], 'xyzzy')).toEqual([])
})
