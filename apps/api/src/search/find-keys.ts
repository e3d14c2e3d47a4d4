import { Prisma } from '@bootfarm/db'
import { type KeyedKind, openBootsSql, visibleKeysSql } from '../access/visible.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { tagsMax } from '../rules/object-fields.ts'
import type { SearchTerms } from './search-terms.ts'

/** An object that a search found, by its key or by its id. */
export interface Found {
  kind: KeyedKind | 'boot'
  id: string
  /** The key that begins with the search; null: the id does. */
  key: string | null
  /** 0: it is the search; 1: its name or address begins with it; 2: a later word of it does, or a tag. */
  rank: number
}

/** Of all text, the last by bytes: a range up to it holds what begins with the text before it. */
const lastCharacter = '\u{10ffff}'

/**
 * By rank, the most keys that an object has: so many rows are read for each object, so that none hides the next. A
 * device has a name and three addresses; six later words, two ends of its MAC address, and tags.
 */
const keysMax = { 0: 4, 1: 8 + tagsMax } as const

const idTables = {
  device: Prisma.sql`device`,
  vdisk: Prisma.sql`vdisk`,
  version: Prisma.sql`vdisk_version`,
  site: Prisma.sql`site`,
  edge: Prisma.sql`edge`,
  collection: Prisma.sql`collection`,
} satisfies Record<KeyedKind, Prisma.Sql>

interface Search {
  terms: SearchTerms
  kinds: KeyedKind[]
  /** Boots are found by their ids. */
  withBoots: boolean
  limit: number
}

/**
 * Reads, in one statement, at most `limit` objects of each range of keys: whole names first, then later words. Each
 * part reads an index in its order, so that its work does not grow with what is there.
 */
export async function findKeys({ db, actor }: ServiceContext, search: Search): Promise<Found[]> {
  const { terms, kinds, withBoots, limit } = search
  const own = Prisma.sql`organization_id = ${actor.organizationId}::uuid`
  const byKey = (kind: KeyedKind, rank: 0 | 1, term: string) => Prisma.sql`
    (select ${kind} as kind, ${rank}::integer as rank, min(key) as key, object_id from (
      select key, object_id from search_key
      where ${own} and kind = ${kind} and rank = ${rank}::smallint and key >= ${term} and key < ${term + lastCharacter}
        and ${visibleKeysSql(actor, kind)}
      order by key, object_id limit ${limit * keysMax[rank]}) as found
    group by object_id order by min(key), object_id limit ${limit})`
  const byId = (kind: KeyedKind) => {
    const { from = '', until = '' } = terms.ids ?? {}
    return Prisma.sql`
      (select ${kind} as kind, 0 as rank, null as key, object_id from (select organization_id, id as object_id
        from ${idTables[kind]} where ${own} and id between ${from}::uuid and ${until}::uuid) as search_key
      where ${visibleKeysSql(actor, kind)} order by object_id limit ${limit})`
  }
  const parts = kinds.flatMap((kind) => [
    byKey(kind, 0, terms.text),
    byKey(kind, 1, terms.text),
    ...(kind === 'device' && terms.digits ? [byKey(kind, 0, terms.digits), byKey(kind, 1, terms.digits)] : []),
    ...(terms.ids ? [byId(kind)] : []),
  ])
  if (withBoots && terms.ids)
    parts.push(Prisma.sql`
      (select 'boot' as kind, 0 as rank, null as key, boot_id as object_id from boot_key
      join boot on boot.organization_id = boot_key.organization_id and boot.id = boot_key.boot_id
        and boot.received_on = boot_key.received_on
      join site on site.organization_id = boot.organization_id and site.id = boot.site_id
      left join device on device.organization_id = boot.organization_id and device.id = boot.device_id
      where boot_key.${own} and boot_id between ${terms.ids.from}::uuid and ${terms.ids.until}::uuid
        and ${openBootsSql(actor)}
      order by boot_id limit ${limit})`)
  if (parts.length === 0) return []
  const rows = await db.$queryRaw<(Omit<Found, 'id'> & { object_id: string })[]>`
    select kind, rank, key, object_id::text from (${Prisma.join(parts, ' union all ')}) as found`
  return bestOfEach(
    rows.map(({ object_id, kind, rank, key }) => {
      const isWhole = key !== null && (key === terms.text || key === terms.digits)
      return { kind, id: object_id, key, rank: isWhole ? 0 : rank + 1 }
    }),
  )
}

/** An object may have several keys that begin alike. */
function bestOfEach(found: Found[]): Found[] {
  const best = new Map<string, Found>()
  for (const one of found) {
    const known = best.get(`${one.kind} ${one.id}`)
    if (!known || one.rank < known.rank) best.set(`${one.kind} ${one.id}`, one)
  }
  return [...best.values()].sort((a, b) => a.rank - b.rank)
}
