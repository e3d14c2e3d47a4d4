import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cpSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort, makeReachableFolder } from '../test/test-postgres.ts'
import { requireApiRole } from './api-role.ts'
import { createDb } from './client.ts'
import { wholeSchema } from './earlier-migrations.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.ts'
import { migrate } from './migrate.ts'

const cli = fileURLToPath(new URL('./cli.ts', import.meta.url))
const migrations = fileURLToPath(new URL('../prisma/migrations/', import.meta.url))
const password = 'p@ss/wörd:1'
const [own, foreign] = [randomUUID(), randomUUID()]
let folder: string
/** A server of this file's own, where nobody has made the API's group. */
let server: EmbeddedPostgres

beforeAll(async () => {
  folder = makeReachableFolder()
  server = await startEmbeddedPostgres({
    dir: path.join(folder, 'cluster'),
    port: await freePort(),
    settings: { fsync: 'off' },
  })
  await query(server.url('postgres'), `create role landlord login password '${password}' createrole`)
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function query<T>(url: string, ...statements: string[]): Promise<T[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    let rows: T[] = []
    for (const sql of statements) rows = (await client.query(sql)).rows
    return rows
  } finally {
    await client.end()
  }
}

/** A name that no other test of this server has. */
const uniqueName = (noun: string) => `${noun}_${randomUUID().slice(0, 8)}`

function urlOf(role: string, database: string): string {
  const url = new URL(server.url(database))
  url.username = role
  url.password = encodeURIComponent(password)
  return url.toString()
}

/** A database whose owner is no superuser, as at those who rent one. */
async function plainDatabase(ownerRole = 'landlord') {
  const [database, apiRole] = [uniqueName('database'), uniqueName('api')]
  await query(server.url('postgres'), `create database ${database} owner ${ownerRole}`)
  return { database, ownerUrl: urlOf(ownerRole, database), apiRole, apiUrl: urlOf(apiRole, database) }
}

const set = (organizationId: string) => `set bootfarm.organization_id = '${organizationId}'`
const twoOrganizations = `insert into organization (id, slug, name) values ('${own}', 'own', 'Own'), ('${foreign}', 'foreign', 'Foreign');
  insert into farm (organization_id, id, name) values ('${own}', '${own}', 'Own'), ('${foreign}', '${foreign}', 'Foreign')`

describe('an owner that is no superuser', () => {
  test('migrates, and so do two programs at once, twice; the API sees one organization, the owner all', async () => {
    const { ownerUrl, apiUrl } = await plainDatabase()
    await Promise.all([migrate(ownerUrl, { apiUrl }), migrate(ownerUrl, { apiUrl })])
    expect(await migrate(ownerUrl, { apiUrl })).toEqual([])
    await query(ownerUrl, twoOrganizations)
    expect(await query(ownerUrl, 'select id from farm')).toHaveLength(2)
    expect(await query(apiUrl, 'select id from farm')).toEqual([])
    expect(await query(apiUrl, set(own), 'select id from farm')).toEqual([{ id: own }])
    expect(await query(apiUrl, 'select count(*)::int as count from organization_ids()')).toEqual([{ count: 2 }])
  })

  test('lets foreign keys hold and cascade beside FORCE', async () => {
    const { ownerUrl, apiUrl } = await plainDatabase()
    await migrate(ownerUrl, { apiUrl })
    await query(ownerUrl, twoOrganizations)
    const site = (organization: string, farm: string) =>
      `insert into site (organization_id, id, farm_id, name, time_zone) values ('${organization}', gen_random_uuid(), '${farm}', 'S', 'UTC')`
    await query(apiUrl, set(own), site(own, own))
    await expect(query(apiUrl, set(own), site(own, foreign))).rejects.toMatchObject({ code: '23503' })
    await expect(query(apiUrl, set(own), site(foreign, foreign))).rejects.toMatchObject({ code: '42501' })
    await query(apiUrl, set(own), `delete from organization where id = '${own}'`)
    expect(await query(ownerUrl, 'select 1 from site union all select 1 from farm')).toHaveLength(1)
  })

  test('that may not make roles is told what an administrator has to run, one sentence after the other', async () => {
    await query(server.url('postgres'), `create role tenant login password '${password}'`)
    const { ownerUrl, apiUrl, apiRole } = await plainDatabase('tenant')
    const toRun = async () => {
      const error = await migrate(ownerUrl, { apiUrl }).catch((thrown: Error) => thrown)
      return error instanceof Error ? (/run it once: (.*)/.exec(error.message)?.[1] ?? error.message) : null
    }
    const create = await toRun()
    expect(create).toMatch(new RegExp(`^create role "?${apiRole}"? login .* password '…'$`))
    await query(server.url('postgres'), String(create).replace('…', password))
    const grant = await toRun()
    expect(grant).toMatch(/^grant bootfarm_api to /)
    await query(server.url('postgres'), String(grant))
    expect(await toRun()).toBeNull()
    expect(await query(apiUrl, 'select id from farm')).toEqual([])
  })
})

describe('the role of DATABASE_URL', () => {
  test('gets the password that DATABASE_URL has now', async () => {
    const { ownerUrl, apiUrl, apiRole } = await plainDatabase()
    await migrate(ownerUrl, { apiUrl })
    await query(server.url('postgres'), `alter role ${apiRole} password 'another'`)
    await expect(query(apiUrl, 'select 1')).rejects.toThrow(/password authentication failed/)
    await migrate(ownerUrl, { apiUrl })
    expect(await query(apiUrl, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('is refused where it is the owner, may become the owner, or may more than the API should', async () => {
    const { ownerUrl, apiUrl, apiRole } = await plainDatabase()
    await expect(migrate(ownerUrl, { apiUrl: ownerUrl })).rejects.toThrow(
      /signs in as landlord, which owns the tables. DATABASE_OWNER_URL is for/,
    )
    const admin = server.url('postgres')
    await query(admin, `create role ${apiRole} login password '${password}'`)
    await migrate(ownerUrl, { apiUrl })
    const db = createDb(apiUrl)
    await requireApiRole(db)
    await query(admin, `grant landlord to ${apiRole}`)
    await expect(requireApiRole(db)).rejects.toThrow(/which owns the tables/)
    await query(admin, `revoke landlord from ${apiRole}`)
    for (const right of ['superuser', 'bypassrls', 'createrole', 'createdb', 'replication']) {
      await query(admin, `alter role ${apiRole} ${right}`)
      await expect(requireApiRole(db)).rejects.toThrow(/may more than the API should/)
      await expect(migrate(ownerUrl, { apiUrl })).rejects.toThrow(/may more than the API should/)
      await query(admin, `alter role ${apiRole} no${right}`)
    }
    await requireApiRole(db)
    await db.$disconnect()
  })

  test('alone can sign in to the database, beside its owner', async () => {
    const { ownerUrl, apiUrl, database } = await plainDatabase()
    await migrate(ownerUrl, { apiUrl })
    const stranger = uniqueName('stranger')
    await query(server.url('postgres'), `create role ${stranger} login password '${password}'`)
    await expect(query(urlOf(stranger, database), 'select 1')).rejects.toThrow(/permission denied for database/)
  })
})

test('an installation of before goes on with all it has, and `migrate` without DATABASE_OWNER_URL says what to set', async () => {
  const { ownerUrl, apiUrl } = await plainDatabase()
  for (const name of readdirSync(migrations))
    if (name <= wholeSchema) cpSync(path.join(migrations, name), path.join(folder, name), { recursive: true })
  await migrate(ownerUrl, { folder })
  await query(ownerUrl, twoOrganizations)
  const run = (env: object) =>
    promisify(execFile)(process.execPath, [cli, 'migrate'], { env: { ...process.env, ...env } })
  await expect(run({ DATABASE_URL: ownerUrl, DATABASE_OWNER_URL: '' })).rejects.toThrow(
    /DATABASE_OWNER_URL is not set. DATABASE_OWNER_URL is for `migrate`/,
  )
  await run({ DATABASE_URL: apiUrl, DATABASE_OWNER_URL: ownerUrl })
  expect(await query(apiUrl, set(foreign), 'select name from farm')).toEqual([{ name: 'Foreign' }])
})
