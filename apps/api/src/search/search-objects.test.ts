import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  createSearchedOrganization,
  idsBegin,
  namesBegin,
  type SearchedOrganization,
} from '../../test/matrix/searched-organization.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, type ProcedureAnswer } from '../../test/test-client.ts'
import { sessionCookie } from '../../test/test-tenant.ts'
import { newApiKeySecret } from '../api-key/api-key-secret.ts'
import { permissionNames, roles } from '../rules/permissions.ts'
import type { Place } from '../rules/place.ts'
import { type SearchKind, type SearchResult, searchKinds } from './schema.ts'

// Callers with random roles in random places: search shows each what the lists show the same caller, nothing more and
// nothing less, and finds by its id what the caller can open. Beside them is another organization whose names and ids
// begin like theirs, and much is in the trash.

const seeds = Array.from({ length: 16 }, (_, index) => index + 1)

/** Itself, two with their collection, and four with their site. */
const removedDevices = 7

const doors: Record<SearchKind, { list?: string; get: string; idName: string }> = {
  device: { list: 'device.list', get: 'device.get', idName: 'deviceId' },
  boot: { list: 'boot.list', get: 'boot.get', idName: 'bootId' },
  vdisk: { list: 'vdisk.list', get: 'vdisk.get', idName: 'vdiskId' },
  version: { get: 'version.get', idName: 'versionId' },
  site: { list: 'site.list', get: 'site.get', idName: 'siteId' },
  edge: { list: 'edge.list', get: 'edge.get', idName: 'edgeId' },
  collection: { list: 'collection.list', get: 'collection.get', idName: 'collectionId' },
  person: { list: 'member.list', get: 'member.get', idName: 'userId' },
}

let api: TestApi
let own: SearchedOrganization
let other: SearchedOrganization

beforeAll(async () => {
  api = await startTestApi()
  own = await createSearchedOrganization(api, 'own')
  other = await createSearchedOrganization(api, 'other')
  const { cookie } = await addPerson([{ role: 'owner', place: own.places[0] }])
  const { ids, organizationId } = own
  const revoked = { organizationId, siteId: { in: ids.site.slice(1, 3) } }
  await api.db.edge.updateMany({ where: revoked, data: { revokedAt: api.clock.now } })
  await remove(cookie, { device: ids.device[2], version: ids.version[1], vdisk: ids.vdisk[1] })
  await remove(cookie, { collection: ids.collection[3], site: ids.site[2] })
})
afterAll(() => api?.close())

async function remove(cookie: string, objects: Partial<Record<SearchKind, string | undefined>>): Promise<void> {
  for (const [kind, id] of Object.entries(objects)) {
    const input = { [doors[kind as SearchKind].idName]: id }
    const path = kind === 'version' ? 'vdisk.removeVersion' : `${kind}.remove`
    const answer = await callProcedure(api, { path, type: 'mutation', input, cookie })
    expect([kind, answer.status, answer.text]).toEqual([kind, 200, expect.anything()])
  }
}

type Random = (below: number) => number

/** The same numbers for the same seed, by Lehmer's generator. */
function randomFrom(seed: number): Random {
  let state = seed * 7_919
  return (below) => {
    state = (state * 48_271) % 2_147_483_647
    return Math.floor((state / 2_147_483_647) * below)
  }
}

function oneOf<T>(random: Random, all: readonly T[]): T {
  return all[random(all.length)] as T
}

interface Role {
  role: (typeof roles)[number]
  place: Place | undefined
}

/** A grant is kept at the lowest place that it names. */
function lowest(place: Place | undefined) {
  const { farmId = null, siteId = null, collectionId = null } = place ?? {}
  if (collectionId) return { collectionId }
  return siteId ? { siteId } : farmId ? { farmId } : {}
}

async function addPerson(
  grants: Role[],
  { organizationId } = own,
  { serviceOf = null }: { serviceOf?: string | null } = {},
): Promise<{ userId: string; cookie: string }> {
  const userId = randomUUID()
  const person = { id: userId, name: `${namesBegin} person`, email: `${userId}@example.test`, emailVerified: true }
  await api.db.user.create({ data: { ...person, serviceOf } })
  await api.db.membership.create({ data: { organizationId, userId } })
  const data = grants.map(({ role, place }) => ({ organizationId, userId, role, ...lowest(place) }))
  await api.db.roleGrant.createMany({ data, skipDuplicates: true })
  return { userId, cookie: serviceOf ? '' : await sessionCookie(api, userId) }
}

/** Someone with up to three roles: a person, a person's API key, or a service account's. */
async function randomCaller(random: Random): Promise<Record<string, string>> {
  const randomRole = () => ({ role: oneOf(random, roles), place: oneOf(random, own.places) })
  const kind = oneOf(random, ['person', 'person', 'key', 'service account'])
  const grants = Array.from({ length: 1 + random(3) }, randomRole)
  const serviceOf = kind === 'service account' ? own.organizationId : null
  const { userId, cookie } = await addPerson(grants, own, { serviceOf })
  if (kind === 'person') {
    if (random(3) > 0) return { cookie }
    // Somebody who may see everything in the other organization.
    const { organizationId } = other
    await api.db.membership.create({ data: { organizationId, userId } })
    await api.db.roleGrant.create({ data: { organizationId, userId, role: 'owner' } })
    return { cookie }
  }
  const { secret, prefix, secretHash } = newApiKeySecret()
  const isNarrow = kind === 'key' && random(2) === 0
  const { role, place } = isNarrow ? randomRole() : { role: 'owner' as const, place: own.places[0] }
  const some = permissionNames.filter((name) => name === 'organization.read' || random(3) > 0)
  const bounds = { role, ...lowest(place), permissions: random(2) === 0 ? some : [] }
  const { organizationId } = own
  const facts = { name: 'A key', prefix, secretHash, requestsPerMinute: 6_000, createdAt: api.clock.now }
  await api.db.apiKey.create({ data: { organizationId, createdByUserId: userId, ...facts, ...bounds } })
  return { authorization: `Bearer ${secret}` }
}

const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id).sort()

class Caller {
  /** Of the versions that it listed, those with number 1. */
  firstVersions: string[] = []
  readonly #headers: Record<string, string>

  constructor(headers: Record<string, string>) {
    this.#headers = headers
  }

  ask(path: string, input: object): Promise<ProcedureAnswer> {
    return callProcedure(api, { path, type: 'query', input, headers: this.#headers })
  }

  /** The ids of a list; none where the caller may not read it. */
  async list(kind: SearchKind): Promise<string[]> {
    if (kind === 'version') return this.#versions()
    const { status, data, text } = await this.ask(doors[kind].list ?? '', { limit: 100 })
    if (status === 403 || status === 401) return []
    expect([status, text]).toEqual([200, expect.anything()])
    const { items, nextCursor } = data as { items: { id?: string; userId?: string }[]; nextCursor: unknown }
    expect(nextCursor ?? null).toBeNull()
    const ids = items.map(({ id, userId }) => id ?? userId ?? '').sort()
    // A device's new collection lists the boots of its old site, which it cannot open; search leaves them out.
    const moved = own.ids.boot.at(-2) ?? ''
    if (kind !== 'boot' || !ids.includes(moved)) return ids
    const { status: opened } = await this.ask('boot.get', { bootId: moved })
    return ids.filter((id) => id !== moved || opened === 200)
  }

  /** Those of the pages of all vDisks. */
  async #versions(): Promise<string[]> {
    const versions: { id: string; number: number }[] = []
    for (const vdiskId of await this.list('vdisk')) {
      const { status, data, text } = await this.ask('vdisk.get', { vdiskId })
      expect([status, text]).toEqual([200, expect.anything()])
      versions.push(...(data as { versions: typeof versions }).versions)
    }
    this.firstVersions = idsOf(versions.filter(({ number }) => number === 1))
    return idsOf(versions)
  }

  async find(search: string, limit = 100): Promise<Map<SearchKind, { ids: string[]; hasMore: boolean }>> {
    const { status, data, text } = await this.ask('search.find', { search, limit })
    if (status === 403 || status === 401) return new Map()
    expect([status, text]).toEqual([200, expect.anything()])
    const { groups } = data as SearchResult
    return new Map(groups.map(({ kind, items, hasMore }) => [kind, { ids: idsOf(items), hasMore }]))
  }
}

const firstVersions = `${namesBegin} version 1`

/** How many devices each caller saw. */
const seenDevices = new Set<number>()

test.each(seeds)('search shows what the lists show (seed %i)', async (seed) => {
  const random = randomFrom(seed)
  const caller = new Caller(await randomCaller(random))
  const listed = new Map<SearchKind, string[]>()
  await Promise.all(searchKinds.map(async (kind) => listed.set(kind, await caller.list(kind))))
  const limit = 1 + random(4)
  const compare = async (search: string, isFound: (kind: SearchKind) => boolean) => {
    const [all, few] = await Promise.all([caller.find(search), caller.find(search, limit)])
    for (const kind of searchKinds.filter(isFound)) {
      const ids = search === firstVersions ? caller.firstVersions : (listed.get(kind) ?? [])
      expect([kind, search, all.get(kind)?.ids ?? []]).toEqual([kind, search, ids])
      const { ids: first, hasMore } = few.get(kind) ?? { ids: [], hasMore: false }
      expect([kind, search, first.length, hasMore]).toEqual([
        kind,
        search,
        Math.min(limit, ids.length),
        ids.length > limit,
      ])
      expect(ids).toEqual(expect.arrayContaining(first))
    }
  }
  // Without the last boots of devices: nothing here has one.
  await compare(namesBegin, (kind) => kind !== 'boot')
  await compare(idsBegin, (kind) => kind !== 'person')
  await compare(firstVersions, (kind) => kind === 'version')
  seenDevices.add(listed.get('device')?.length ?? 0)
})

test.each(seeds.slice(0, 6))('search finds by its id what the caller can open (seed %i)', async (seed) => {
  const random = randomFrom(seed + 1_000)
  const caller = new Caller(await randomCaller(random))
  const compare = async (kind: SearchKind, id: string) => {
    const { get, idName } = doors[kind]
    const [{ status }, found] = await Promise.all([caller.ask(get, { [idName]: id }), caller.find(id)])
    expect([kind, id, found.get(kind)?.ids ?? []]).toEqual([kind, id, status === 200 ? [id] : []])
  }
  for (const kind of searchKinds) {
    if (kind === 'person') continue
    // The last device has moved, and its boot is the last but one.
    const ids = [oneOf(random, own.ids[kind]), own.ids[kind].at(kind === 'boot' ? -2 : -1) ?? '']
    await Promise.all([...ids, oneOf(random, other.ids[kind])].map((id) => compare(kind, id)))
  }
})

test('among those callers are some who see nothing, a part, and everything', () => {
  const all = own.ids.device.length - removedDevices
  expect([Math.min(...seenDevices), Math.max(...seenDevices)]).toEqual([0, all])
  expect(seenDevices.size).toBeGreaterThan(3)
})

const words = `% _ %%% obj% ob_ \\ \\% ' '' " $1 ? * .* ^obj (obj|x) [[:alpha:]] <b> 1.1.1.1 255.255.255.255. 00:00`
const hostileSearches = [
  ...words.split(' '),
  `' or '1'='1`,
  `'; drop table search_key; --`,
  `obj') or true --`,
  `obj' collate "C" --`,
  '{"contains":""}',
  'x'.repeat(64),
  '\u00e9'.repeat(64),
  '0'.repeat(64),
  'f'.repeat(32),
]
const refusedSearches = {
  'Enter what to search for.': ['', ' ', ' \t \n ', '\u00a0\u2003', ' '.repeat(200)],
  'A search can have at most 64 characters.': ['x'.repeat(65), 'x'.repeat(10_240), '%'.repeat(4_096)],
  'A search cannot contain control characters.': ['\u001b[2Jx', 'x\u202ey', 'a\nb', 'x\u{10ffff}'],
  'must hold neither zero bytes nor halves of characters.': ['a\u0000b', 'x\ud800'],
}

test('no search shows anything of another organization, however hostile it is', async () => {
  const viewer = new Caller({ cookie: (await addPerson([{ role: 'owner', place: own.places[0] }])).cookie })
  const theirs = new Set(Object.values(other.ids).flat())
  const oneOfEach = Object.values(other.ids).map(([id = '']) => id)
  const { organizationId } = other
  const site = { organizationId, farmId: other.places[1]?.farmId ?? '', timeZone: 'UTC' }
  for (const name of hostileSearches) theirs.add((await api.db.site.create({ data: { ...site, name } })).id)
  const { cookie } = await addPerson([{ role: 'owner', place: other.places[0] }], other)
  const them = new Caller({ cookie })
  for (const search of [...hostileSearches, namesBegin, idsBegin, ...oneOfEach]) {
    const found = [...(await viewer.find(search)).values()].flatMap(({ ids }) => ids)
    expect([search, found.filter((id) => theirs.has(id))]).toEqual([search, []])
  }
  // They are there to be found: each by its whole name, which means nothing but itself.
  for (const search of hostileSearches) {
    const { ids = [] } = (await them.find(search)).get('site') ?? {}
    const named = await api.db.site.findMany({ where: { organizationId, name: search }, select: { id: true } })
    expect([search, ids]).toEqual([search, expect.arrayContaining(named.map(({ id }) => id))])
  }
})

test.each(Object.entries(refusedSearches))('refuses with “%s”', async (sentence, searches) => {
  const { cookie } = await addPerson([{ role: 'owner', place: own.places[0] }])
  for (const search of searches) {
    const { status, code, text } = await new Caller({ cookie }).ask('search.find', { search })
    expect([search, status, code]).toEqual([search, 400, 'invalid'])
    expect(text).toContain(sentence)
  }
})
