import { AppError } from '../errors/app-error.ts'
import type { ServiceContext } from './service-context.ts'

export interface Users {
  noun: string
  count: number
  /** The first of them, by name. */
  names: string[]
}

const namesToldMax = 3

/** "3 collections (Lab, Hall, Office)": the users of something, as the end of a sentence. Null if there are none. */
export function usersText({ noun, count, names }: Users): string | null {
  if (count === 0) return null
  const shown = names.slice(0, namesToldMax).join(', ')
  if (count === 1) return `the ${noun} ${shown}`
  return `${count} ${noun}s (${shown}${count > namesToldMax ? ', …' : ''})`
}

/** Throws `conflict` if anything uses it: what, how many, and what to do first. */
export function requireUnused(users: Users[], { verb, instead }: { verb: string; instead: string }): void {
  const texts = users.map(usersText).filter((text) => text !== null)
  if (texts.length > 0)
    throw new AppError('conflict', { public: `It is ${verb} by ${texts.join(' and ')}. To continue, ${instead}` })
}

/** Objects with a name that is unique in its place: how people call both. */
const named = {
  farm: { noun: 'a farm', place: 'This organization' },
  site: { noun: 'a site', place: 'This farm' },
  store: { noun: 'a store', place: 'This farm' },
  vdisk: { noun: 'a vDisk', place: 'This farm' },
  collection: { noun: 'a collection', place: 'This site' },
  edge: { noun: 'an edge', place: 'This site' },
} as const

/** Throws `conflict` where something else in the place already has the name. */
export async function requireFreeName(
  { db, actor: { organizationId } }: ServiceContext,
  kind: keyof typeof named,
  where: { name: string; farmId?: string; siteId?: string; revokedAt?: null },
): Promise<void> {
  if ((await tableOf(db, kind).count({ where: { organizationId, ...where } })) === 0) return
  const { noun, place } = named[kind]
  throw new AppError('conflict', { public: `${place} already has ${noun} named ${where.name}.` })
}

const usedNouns = { edge: 'edge', collection: 'collection', device: 'device', vdisk: 'vDisk', bootMenu: 'boot menu' }

/** Users of one kind, for `requireUnused`. */
export async function readUsers(
  { db }: Pick<ServiceContext, 'db'>,
  kind: keyof typeof usedNouns,
  where: object,
): Promise<Users> {
  const table = tableOf(db, kind)
  const first = await table.findMany({ where, orderBy: { name: 'asc' }, take: namesToldMax, select: { name: true } })
  return { noun: usedNouns[kind], count: await table.count({ where }), names: first.map(({ name }) => name) }
}

/** The common columns of the tables of named objects. */
interface NamedTable {
  count(query: { where: object }): Promise<number>
  findMany(query: object): Promise<{ name: string }[]>
}

function tableOf(db: ServiceContext['db'], kind: keyof typeof named | keyof typeof usedNouns): NamedTable {
  return db[kind] as unknown as NamedTable
}

/** Prisma distinguishes an absent field from an undefined one. */
export function definedOf<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  if (entries.length === 0) throw new AppError('invalid', { public: 'Nothing to change.' })
  return Object.fromEntries(entries) as never
}
