/** Gives the schema engine what @prisma/adapter-pg lacks: shadow databases and the type "char". */
import { randomUUID } from 'node:crypto'
import { PrismaPg } from '@prisma/adapter-pg'
import { ColumnTypeEnum } from '@prisma/driver-adapter-utils'
import pg from 'pg'
import PgResult from 'pg/lib/result.js'

// The adapter has no mapping for the catalog type "char" (oid 18) that introspection reads. Such columns are marked in
// pg, read as text, and called Character again at the adapter.
const charOid = 18
const textOid = 25
const mark = '\u0001char:'
const addFields = PgResult.prototype.addFields
PgResult.prototype.addFields = function markCharFields(fields) {
  for (const field of fields) {
    if (field.dataTypeID !== charOid) continue
    field.dataTypeID = textOid
    field.name = mark + field.name
  }
  return addFields.call(this, fields)
}

function withCharColumns(queryable) {
  const queryRaw = queryable.queryRaw.bind(queryable)
  queryable.queryRaw = async (query) => {
    const result = await queryRaw(query)
    result.columnNames.forEach((name, index) => {
      if (!name.startsWith(mark)) return
      result.columnNames[index] = name.slice(mark.length)
      result.columnTypes[index] = ColumnTypeEnum.Character
    })
    return result
  }
  if (queryable.startTransaction) {
    const start = queryable.startTransaction.bind(queryable)
    queryable.startTransaction = async (...options) => withCharColumns(await start(...options))
  }
  return queryable
}

/** `?schema=x` is Prisma's, not libpq's. */
function splitUrl(url) {
  const parsed = new URL(url)
  const schema = parsed.searchParams.get('schema') ?? undefined
  parsed.searchParams.delete('schema')
  return { url: parsed.toString(), schema }
}

export function databaseName(url) {
  return decodeURIComponent(new URL(url).pathname.slice(1))
}

export async function withDatabase(url, use) {
  const client = new pg.Client({ connectionString: splitUrl(url).url })
  await client.connect()
  try {
    await use(client)
  } finally {
    await client.end()
  }
}

/** Connected to the neighbouring database `postgres`, with the quoted name of the URL's own. */
export async function withAdmin(url, use) {
  const admin = new URL(splitUrl(url).url)
  admin.pathname = '/postgres'
  await withDatabase(admin.toString(), (client) => use(client, pg.escapeIdentifier(databaseName(url))))
}

export class MigrationPg extends PrismaPg {
  constructor(url, shadowUrl) {
    const { url: connectionString, schema } = splitUrl(url)
    super({ connectionString }, { schema })
    this.url = connectionString
    this.shadowUrl = shadowUrl
  }

  async connect() {
    return withCharColumns(await super.connect())
  }

  async connectToShadowDb() {
    if (this.shadowUrl) {
      const shadow = new PrismaPg({ connectionString: splitUrl(this.shadowUrl).url })
      return withCharColumns(await shadow.connect())
    }
    const shadowUrl = new URL(this.url)
    shadowUrl.pathname = `/prisma_migrate_shadow_db_${randomUUID()}`
    const url = shadowUrl.toString()
    await withAdmin(url, (client, name) => client.query(`create database ${name}`))
    const shadow = withCharColumns(await new PrismaPg({ connectionString: url }).connect())
    const dispose = shadow.dispose.bind(shadow)
    shadow.dispose = async () => {
      await dispose()
      await withAdmin(url, (client, name) => client.query(`drop database if exists ${name} with (force)`))
    }
    return shadow
  }
}
