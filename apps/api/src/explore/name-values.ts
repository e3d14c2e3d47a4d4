import { Prisma } from '@bootfarm/db'
import type { ServiceContext } from '../context/service-context.ts'
import { type AttributeName, attributeOf } from './attributes.ts'

interface AttributeValue {
  attribute: AttributeName
  value: string | null
}

const tables = {
  site: Prisma.sql`site`,
  edge: Prisma.sql`edge`,
  collection: Prisma.sql`collection`,
  device: Prisma.sql`device`,
}

/** The names of values that are ids, by `attribute value`. Boots outlive what they name: some have none. */
export async function nameValues(
  { db, actor }: ServiceContext,
  values: AttributeValue[],
): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  const own = Prisma.sql`organization_id = ${actor.organizationId}::uuid`
  for (const attribute of new Set(values.map((one) => one.attribute))) {
    const kind = attributeOf(attribute).names
    if (kind === null) continue
    const ids = values.flatMap((one) => (one.attribute === attribute ? (one.value ?? []) : []))
    const rows =
      kind === 'version'
        ? await db.$queryRaw<{ id: string; name: string }[]>`
            select version.id::text, vdisk.name || ', version ' || version.number as name
            from vdisk_version as version join vdisk
              on vdisk.organization_id = version.organization_id and vdisk.id = version.vdisk_id
            where version.${own} and version.id = any(${ids}::uuid[])`
        : await db.$queryRaw<{ id: string; name: string }[]>`
            select id::text, name from ${tables[kind]} where ${own} and id = any(${ids}::uuid[])`
    for (const { id, name } of rows) names.set(`${attribute} ${id}`, name)
  }
  return names
}
