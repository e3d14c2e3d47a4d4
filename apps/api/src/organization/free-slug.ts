import { randomBytes } from 'node:crypto'
import type { Db } from '@bootfarm/db'

const slugLengthMax = 40
const suffixSizeBytes = 3

/** A short name for addresses out of the name of a new organization, one that no other has. */
export async function freeSlug(db: Db, name: string): Promise<string> {
  const plain = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, slugLengthMax)
  const slug = plain || 'organization'
  const [taken] = await db.$queryRaw<{ id: string | null }[]>`select organization_of_slug(${slug})::text as id`
  return taken?.id ? `${slug}-${randomBytes(suffixSizeBytes).toString('hex')}` : slug
}
