import type { z } from 'zod'
import type { KeyedKind } from '../access/visible.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { withStatementLimit } from '../context/statement-limit.ts'
import { findPeople } from '../member/public.ts'
import { type Found, findKeys } from './find-keys.ts'
import { findEdgesByAddress, findVersions, type ReadHit, readBootHits, readHits } from './read-hits.ts'
import { type SearchHit, type SearchKind, type SearchResult, type searchInput, searchKinds } from './schema.ts'
import { type SearchTerms, searchTerms } from './search-terms.ts'

/** For all statements of a search each: a person types on, and the database has other work. */
const statementLimitMs = 1_000

/** People are ranked here, of the first so many by name; more than one page of them. */
const peopleRead = 120

type Input = z.output<typeof searchInput>

/** A group before its rows are cut: the rank of its best row puts it above others. */
interface RankedGroup {
  kind: SearchKind
  items: ReadHit[]
  rank: number
}

/** Finds what the actor may see, by the beginnings of names, addresses and ids. */
export async function searchObjects(context: ServiceContext, input: Input): Promise<SearchResult> {
  return withStatementLimit(context.db, {
    limitMs: statementLimitMs,
    tooLong: 'The search took too long. Enter more characters.',
    work: () => findGroups(context, input),
  })
}

async function findGroups(context: ServiceContext, input: Input): Promise<SearchResult> {
  const kinds = new Set<SearchKind>(input.kinds ?? searchKinds)
  const terms = searchTerms(input.search)
  const take = input.limit + 1
  const keyed = await findKeyed(context, { terms, kinds, take })
  const groups: RankedGroup[] = []
  for (const kind of searchKinds) {
    if (kind === 'boot' || kind === 'person') continue
    const found = keyed.filter((one) => one.kind === kind).slice(0, take)
    groups.push(rankedGroup(kind, await readHits(context, kind, { ids: found.map(({ id }) => id), terms }), found))
  }
  if (kinds.has('boot')) groups.push(await bootGroup(context, { terms, keyed, groups, take }))
  if (kinds.has('person')) groups.push(await personGroup(context, terms.text))
  return {
    groups: groups
      .filter(({ kind, items }) => kinds.has(kind) && items.length > 0)
      .sort((a, b) => a.rank - b.rank || searchKinds.indexOf(a.kind) - searchKinds.indexOf(b.kind))
      .map(({ kind, items }) => ({
        kind,
        items: items.slice(0, input.limit).map(hitOf),
        hasMore: items.length > input.limit,
      })),
  }
}

interface Asked {
  terms: SearchTerms
  kinds: Set<SearchKind>
  take: number
}

async function findKeyed(context: ServiceContext, { terms, kinds, take }: Asked): Promise<Found[]> {
  const isKeyed = (kind: SearchKind): kind is KeyedKind => kind !== 'boot' && kind !== 'person'
  // A device leads to its last boot.
  const keyedKinds = searchKinds
    .filter(isKeyed)
    .filter((kind) => kinds.has(kind) || (kind === 'device' && kinds.has('boot')))
  const found = await findKeys(context, { terms, kinds: keyedKinds, withBoots: kinds.has('boot'), limit: take })
  const add = (kind: KeyedKind, ids: string[], rank: number) => {
    for (const id of ids)
      if (!found.some((one) => one.kind === kind && one.id === id)) found.push({ kind, id, key: null, rank })
  }
  if (terms.ip && kinds.has('edge')) add('edge', await findEdgesByAddress(context, { ip: terms.ip, take }), 1)
  const { version } = terms
  if (version && kinds.has('version')) add('version', await findVersions(context, { version, take }), 0)
  return found
}

/** In the order of the keys: what was searched for itself, whole names, later words; by name within each. */
function rankedGroup(kind: SearchKind, hits: ReadHit[], found: Found[]): RankedGroup {
  const rankOf = new Map(found.map(({ id, rank }) => [id, rank]))
  const rank = ({ id }: ReadHit) => rankOf.get(id) ?? found.length
  const sorted = hits.toSorted((a, b) => rank(a) - rank(b) || compareNames(a.name, b.name))
  const [best] = sorted
  return { kind, items: sorted, rank: best ? rank(best) : 0 }
}

const byNumber = new Intl.Collator('en', { numeric: true })

/** `pc-9` is before `pc-10`. */
function compareNames(a: string, b: string): number {
  return byNumber.compare(a, b)
}

function hitOf({ lastBootId: _lastBootId, ...hit }: ReadHit): SearchHit {
  return hit
}

interface AskedBoots extends Pick<Asked, 'terms' | 'take'> {
  keyed: Found[]
  groups: RankedGroup[]
}

/** Boots by their ids, and the last boots of the devices that were found. */
async function bootGroup(context: ServiceContext, { terms, keyed, groups, take }: AskedBoots): Promise<RankedGroup> {
  const byId = keyed.filter(({ kind }) => kind === 'boot').map(({ id }) => id)
  const devices = groups.find(({ kind }) => kind === 'device')
  const ofDevices = devices?.items.flatMap(({ lastBootId }) => lastBootId ?? []) ?? []
  const hits = await readBootHits(context, [...new Set([...byId, ...ofDevices])].slice(0, 2 * take), terms)
  const isNamed = ({ id }: ReadHit) => byId.includes(id)
  const items = [...hits.filter(isNamed), ...hits.filter((hit) => !isNamed(hit))]
  return { kind: 'boot', items, rank: byId.length > 0 ? 1 : (devices?.rank ?? 0) }
}

async function personGroup(context: ServiceContext, text: string): Promise<RankedGroup> {
  const people = await findPeople(context, { text, take: peopleRead })
  const ranked = people.map((person) => ({ person, rank: rankOfPerson(person, text) }))
  ranked.sort((a, b) => a.rank - b.rank || compareNames(a.person.name, b.person.name))
  const items = ranked.map(({ person: { userId, name, email } }): ReadHit => {
    const isNamed = name.toLowerCase().includes(text)
    return {
      id: userId,
      name,
      place: null,
      match: isNamed ? null : { field: 'email', value: email },
      vdiskId: null,
      boot: null,
    }
  })
  return { kind: 'person', items, rank: ranked[0]?.rank ?? 0 }
}

function rankOfPerson({ name, email }: { name: string; email: string }, text: string): number {
  const texts = [name.toLowerCase(), email.toLowerCase()]
  if (texts.includes(text)) return 0
  return texts.some((one) => one.startsWith(text)) ? 1 : 2
}
