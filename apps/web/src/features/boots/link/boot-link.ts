/** What a device prints: the first half of its boot's id, or more of it. */
export function linkIdOf(text: string): string | null {
  const digits = text.toLowerCase().replaceAll('-', '')
  return /^[0-9a-f]{12,32}$/.test(digits) ? digits : null
}

/** A search also finds devices of such a name, with their last boots. */
export function bootsOfLink<Hit extends { id: string }>(linkId: string, found?: { groups: { items: Hit[] }[] }): Hit[] {
  const hits = found?.groups.flatMap(({ items }) => items) ?? []
  return hits.filter(({ id }) => id.replaceAll('-', '').startsWith(linkId))
}
