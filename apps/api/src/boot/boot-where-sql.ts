import { Prisma } from '@bootfarm/db'
import { AppError } from '../errors/app-error.ts'

/**
 * The conditions of lists of boots as SQL, for statements that group or sample boots: whoever opens the boots behind a
 * number must find these ones. It takes the forms that `whereOfFilter` and `visibleBoots` make, and refuses others.
 */

const columns = {
  id: { name: Prisma.sql`boot.id`, type: Prisma.sql`uuid` },
  deviceId: { name: Prisma.sql`boot.device_id`, type: Prisma.sql`uuid` },
  siteId: { name: Prisma.sql`boot.site_id`, type: Prisma.sql`uuid` },
  edgeId: { name: Prisma.sql`boot.edge_id`, type: Prisma.sql`uuid` },
  vdiskId: { name: Prisma.sql`boot.vdisk_id`, type: Prisma.sql`uuid` },
  versionId: { name: Prisma.sql`boot.version_id`, type: Prisma.sql`uuid` },
  mac: { name: Prisma.sql`boot.mac`, type: Prisma.sql`text` },
  outcome: { name: Prisma.sql`boot.outcome`, type: Prisma.sql`"BootOutcome"` },
  failedCause: { name: Prisma.sql`boot.failed_cause`, type: Prisma.sql`text` },
  simulated: { name: Prisma.sql`boot.simulated`, type: Prisma.sql`boolean` },
  generated: { name: Prisma.sql`boot.generated`, type: Prisma.sql`boolean` },
  durationUs: { name: Prisma.sql`boot.duration_us`, type: Prisma.sql`bigint` },
  clientArch: { name: Prisma.sql`boot.client_arch`, type: Prisma.sql`integer` },
  isCold: { name: Prisma.sql`boot.is_cold`, type: Prisma.sql`boolean` },
  hour: { name: Prisma.sql`boot.hour`, type: Prisma.sql`smallint` },
  processors: { name: Prisma.sql`boot.processors`, type: Prisma.sql`integer` },
  memoryMib: { name: Prisma.sql`boot.memory_mib`, type: Prisma.sql`integer` },
  networkCard: { name: Prisma.sql`boot.network_card`, type: Prisma.sql`text` },
  hardwareModel: { name: Prisma.sql`boot.hardware_model`, type: Prisma.sql`text` },
  storage: { name: Prisma.sql`boot.storage`, type: Prisma.sql`text` },
  edgeRelease: { name: Prisma.sql`boot.edge_release`, type: Prisma.sql`text` },
  segment: { name: Prisma.sql`boot.segment`, type: Prisma.sql`text` },
}
type Column = (typeof columns)[keyof typeof columns]

/** Throws `internal` for a condition that has no form here. */
export function bootWhereSql(where: Prisma.BootWhereInput): Prisma.Sql {
  const conditions = Object.entries(where)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => {
      if (key === 'AND') return joined(value, ' and ', Prisma.sql`true`)
      if (key === 'OR') return joined(value, ' or ', Prisma.sql`false`)
      const column = columns[key as keyof typeof columns]
      if (!column) throw unknownForm(key)
      return columnSql(column, value)
    })
  return conditions.length === 0 ? Prisma.sql`true` : Prisma.sql`(${Prisma.join(conditions, ' and ')})`
}

function joined(value: unknown, separator: string, empty: Prisma.Sql): Prisma.Sql {
  const parts = [value].flat().map((part) => bootWhereSql(part as Prisma.BootWhereInput))
  return parts.length === 0 ? empty : Prisma.sql`(${Prisma.join(parts, separator)})`
}

function columnSql({ name, type }: Column, value: unknown): Prisma.Sql {
  if (value === null) return Prisma.sql`${name} is null`
  if (typeof value !== 'object') return Prisma.sql`${name} = ${value}::${type}`
  const parts = Object.entries(value).map(([operator, operand]) => {
    switch (operator) {
      case 'in':
        return Prisma.sql`${name} = any(${operand}::${type}[])`
      case 'notIn':
        return Prisma.sql`${name} <> all(${operand}::${type}[])`
      case 'gte':
        return Prisma.sql`${name} >= ${operand}::${type}`
      case 'lte':
        return Prisma.sql`${name} <= ${operand}::${type}`
      case 'contains':
        return Prisma.sql`${name} like ${`%${operand}%`}::${type}`
      default:
        throw unknownForm(operator)
    }
  })
  return parts.length === 0 ? Prisma.sql`true` : Prisma.sql`(${Prisma.join(parts, ' and ')})`
}

function unknownForm(name: string): AppError {
  return new AppError('internal', { internal: `boot-where-sql.ts has no form for ${name}` })
}
