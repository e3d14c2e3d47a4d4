import { createHmac, randomBytes, randomUUID } from 'node:crypto'
import type { Db } from '@bootfarm/db'
import { createJoinToken } from '../src/edge/create-join-token.ts'
import { createAuth } from '../src/http/auth/auth.ts'
import { ensureUser } from '../src/http/auth/create-user.ts'
import { createOrganization, ensureMember } from '../src/organization/found-organization.ts'
import type { Role } from '../src/rules/permissions.ts'
import { setSecretKeys } from '../src/secrets/kept-secrets.ts'
import { secretKeysFrom } from '../src/secrets/secret-keys.ts'
import { testOrigin, testSecret, testSecretsKey } from './test-constants.ts'

// In a process of its own, such as one of the end-to-end tests, nothing else does.
setSecretKeys(secretKeysFrom(testSecretsKey, testSecret))

/**
 * What people, organizations and sessions are made with. End-to-end tests make them, too: with a larger type, checking
 * theirs would be checking the whole API.
 */
export interface RunningApi {
  /** The owner's connection, which sees the rows of all organizations. The server has a separate one. */
  db: Db
  clock: { now: Date; advance(ms: number): void; read(): Date }
  url: string
}

/** The parts of an API that creating rows needs. */
type TestRows = Pick<RunningApi, 'db' | 'clock'>

/** An organization with one of everything, and six devices. */
export interface TestTenant {
  organizationId: string
  farmId: string
  siteId: string
  collectionId: string
  vdiskId: string
  versionId: string
  /** One that nobody uses. */
  joinTokenId: string
  deviceIds: string[]
  macs: string[]
}

export async function createTenant(api: TestRows, slug: string): Promise<TestTenant> {
  const { db } = api
  const context = { db, clock: api.clock.read }
  const organizationId = await createOrganization(context, { slug, name: `Organization ${slug}` })
  const farm = await db.farm.create({ data: { organizationId, name: `Farm of ${slug}` } })
  const vdisk = await db.vdisk.create({ data: { organizationId, farmId: farm.id, name: 'Linux' } })
  const version = await db.vdiskVersion.create({
    data: {
      organizationId,
      vdiskId: vdisk.id,
      number: 1,
      sizeBytes: 419_430_400,
      diskPath: 'a/1/disk.raw',
      kernelPath: 'a/1/kernel',
      initrdPath: 'a/1/initrd',
      commandLine: 'quiet',
    },
  })
  const site = await db.site.create({
    data: { organizationId, farmId: farm.id, name: `Site of ${slug}`, timeZone: 'Europe/Berlin' },
  })
  const collection = await db.collection.create({
    data: { organizationId, siteId: site.id, name: 'Lab', vdiskId: vdisk.id },
  })
  const { id: joinTokenId } = await createJoinToken(context, {
    organizationId,
    siteId: site.id,
    createdByUserId: null,
  })
  const macs = [1, 2, 3, 4, 5, 6].map((number) => `02:bf:00:00:00:0${number}`)
  const deviceIds: string[] = []
  for (const [index, mac] of macs.entries()) {
    const place = { organizationId, siteId: site.id, collectionId: collection.id }
    const device = await db.device.create({ data: { ...place, mac, name: `pc-0${index + 1}` } })
    deviceIds.push(device.id)
  }
  return {
    organizationId,
    farmId: farm.id,
    siteId: site.id,
    collectionId: collection.id,
    vdiskId: vdisk.id,
    versionId: version.id,
    joinTokenId,
    deviceIds,
    macs,
  }
}

export async function makeJoinToken(api: TestRows, { organizationId, siteId }: TestTenant): Promise<string> {
  const context = { db: api.db, clock: api.clock.read }
  const { token } = await createJoinToken(context, { organizationId, siteId, createdByUserId: null })
  return token
}

/** By database client: making one takes longer than what a test asks of it. */
const auths = new WeakMap<Db, ReturnType<typeof createAuth>>()

function authOf(db: Db): ReturnType<typeof createAuth> {
  const auth = auths.get(db) ?? createAuth({ db, webUrl: testOrigin, secret: testSecret })
  auths.set(db, auth)
  return auth
}

/** Makes a person with this role who may sign in. Null role: no membership. */
export async function createPerson(
  { db }: Pick<RunningApi, 'db'>,
  organizationId: string,
  role: Role | null,
): Promise<{ email: string; password: string }> {
  const person = {
    name: `A ${role ?? 'guest'}`,
    email: `${randomUUID()}@example.test`,
    password: randomBytes(12).toString('hex'),
  }
  const userId = await ensureUser(authOf(db), person)
  if (role) await ensureMember(db, { organizationId, userId, role })
  return person
}

/**
 * Creates such a person and returns the cookie of a session like a sign-in, without the time that a password's hash
 * takes. Sign-in itself has separate tests.
 */
export async function signInAs(
  { db }: Pick<RunningApi, 'db'>,
  organizationId: string,
  role: Role | null,
): Promise<string> {
  const user = await db.user.create({
    data: { name: `A ${role ?? 'guest'}`, email: `${randomUUID()}@example.test`, emailVerified: true },
    select: { id: true },
  })
  if (role) await ensureMember(db, { organizationId, userId: user.id, role })
  return sessionCookie({ db }, user.id)
}

/** Signs in an administrator of the installation who is a member of no organization. */
export async function signInAsPlatformOperator({ db }: Pick<RunningApi, 'db'>): Promise<string> {
  const user = await db.user.create({
    data: { name: 'A keeper', email: `${randomUUID()}@example.test`, isPlatformOperator: true },
    select: { id: true },
  })
  return sessionCookie({ db }, user.id)
}

/** Returns the cookie of a new session of this person. */
export async function sessionCookie({ db }: Pick<RunningApi, 'db'>, userId: string): Promise<string> {
  const { authCookies, internalAdapter } = await authOf(db).$context
  const { token } = await internalAdapter.createSession(userId)
  const signature = createHmac('sha256', testSecret).update(token).digest('base64')
  return `${authCookies.sessionToken.name}=${encodeURIComponent(`${token}.${signature}`)}`
}

export function signIn(api: Pick<RunningApi, 'url'>, person: { email: string; password: string }): Promise<Response> {
  return fetch(`${api.url}/api/auth/sign-in/email`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: testOrigin },
    body: JSON.stringify({ email: person.email, password: person.password }),
  })
}
