import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type DbTransaction, inOrganization } from '@bootfarm/db'
import { z } from 'zod'
import type { PlatformContext, SystemContext } from '../context/service-context.ts'
import { createJoinToken } from '../edge/create-join-token.ts'
import type { Auth } from '../http/auth/auth.ts'
import { ensureUser, findUserId } from '../http/auth/create-user.ts'
import { createOrganization } from '../organization/found-organization.ts'
import { type DemoSite, ensureDemoSite } from './ensure-demo-site.ts'

interface DemoSetUp {
  email: string
  organizationId: string
  farmId: string
  siteId: string
  /** Null once an edge has enrolled. */
  joinToken: string | null
}

/**
 * Creates the missing parts of the demo. The password stays in `directory`; a password that a person chose later is
 * kept.
 */
export async function setUpDemo(context: PlatformContext, auth: Auth, directory: string): Promise<DemoSetUp> {
  const { signIn, isNew } = ensureSignInFile(directory)
  const known = await findUserId(auth, signIn.email)
  const userId = known && !isNew ? known : await ensureUser(auth, { name: 'Demo owner', ...signIn })
  const rows = await ensureDemoRows(context, userId)
  const { db, clock } = context
  const joinToken = await inOrganization(db, rows.organizationId, async (transaction) => {
    const inDemo = { db: transaction, clock }
    if (await hasEnrolledEdge(inDemo, rows)) return null
    return (await createJoinToken(inDemo, { ...rows, createdByUserId: null })).token
  })
  return { email: signIn.email, ...rows, joinToken }
}

/** Creates the missing parts of one more site. */
export async function setUpDemoSite(
  { db, clock }: PlatformContext,
  demo: Pick<DemoSetUp, 'organizationId' | 'farmId'>,
  site: DemoSite,
): Promise<{ name: string; siteId: string; joinToken: string | null }> {
  const { organizationId } = demo
  return inOrganization(db, organizationId, async (transaction) => {
    const inDemo = { db: transaction, clock }
    const { siteId } = await ensureDemoSite(inDemo, demo, site)
    const joinToken = site.needsJoinToken
      ? (await createJoinToken(inDemo, { organizationId, siteId, createdByUserId: null })).token
      : null
    return { name: site.name, siteId, joinToken }
  })
}

const passwordSizeBytes = 12
const demoEmail = 'demo@bootfarm.test'
const signIn = z.object({ email: z.string(), password: z.string() })
type DemoSignIn = z.infer<typeof signIn>

/** The demo's sign-in of this installation: read from its file, or created with a new password. */
function ensureSignInFile(directory: string): { signIn: DemoSignIn; isNew: boolean } {
  const file = path.join(directory, 'demo-sign-in.json')
  if (existsSync(file)) return { signIn: signIn.parse(JSON.parse(readFileSync(file, 'utf8'))), isNew: false }
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const made = { email: demoEmail, password: randomBytes(passwordSizeBytes).toString('base64url') }
  writeFileSync(`${file}.partial`, `${JSON.stringify(made)}\n`, { mode: 0o600 })
  renameSync(`${file}.partial`, file)
  return { signIn: made, isNew: true }
}

const organizationSlug = 'demo'
const deviceCount = 6
/** The files that the demo's simulated devices boot: created beside the edge's store at start. */
const demoVersion = {
  number: 1,
  sizeBytes: 419_430_400,
  diskPath: 'demo/1/disk.raw',
  kernelPath: 'demo/1/kernel',
  initrdPath: 'demo/1/initrd',
  commandLine: 'console=ttyS0 ro',
}

/** For test devices; until it is promoted no other device boots it. */
const testVersion = {
  ...demoVersion,
  number: 2,
  state: 'test' as const,
  commandLine: 'console=ttyS0 ro loglevel=7',
  note: 'The same disk, whose kernel says more while it boots.',
}

interface DemoRows {
  organizationId: string
  farmId: string
  siteId: string
}

/** Creates the demo's organization with everything in it; existing objects stay unchanged. */
async function ensureDemoRows(context: PlatformContext, ownerUserId: string): Promise<DemoRows> {
  const organizationId = await ensureDemoOrganization(context, ownerUserId)
  return inOrganization(context.db, organizationId, async (transaction) => {
    const demoFarm = { organizationId, name: 'Demo farm' }
    const farm =
      (await transaction.farm.findFirst({ where: demoFarm, select: { id: true } })) ??
      (await transaction.farm.create({ data: demoFarm, select: { id: true } }))
    const vdiskId = await ensureVdisk(transaction, organizationId, farm.id)
    const demoSite = { organizationId, farmId: farm.id, name: 'Demo site' }
    const site =
      (await transaction.site.findFirst({ where: demoSite, select: { id: true } })) ??
      (await transaction.site.create({
        data: { ...demoSite, timeZone: 'Europe/Berlin' },
        select: { id: true },
      }))
    await ensureDevices(transaction, { organizationId, siteId: site.id, vdiskId })
    return { organizationId, farmId: farm.id, siteId: site.id }
  })
}

/** Returns the organization with this slug whose member its owner is: both are created in one transaction. */
async function ensureDemoOrganization(context: PlatformContext, ownerUserId: string): Promise<string> {
  const [known] = await context.db.$queryRaw<{ id: string }[]>`
    select organization_id::text as id from memberships_of(${ownerUserId}::uuid)
    where organization_slug = ${organizationSlug}`
  return known?.id ?? (await createOrganization(context, { slug: organizationSlug, name: 'Demo', ownerUserId }))
}

async function ensureVdisk(transaction: DbTransaction, organizationId: string, farmId: string): Promise<string> {
  const demoVdisk = { organizationId, farmId, name: 'Demo Linux' }
  const known = await transaction.vdisk.findFirst({ where: demoVdisk, select: { id: true } })
  const vdisk = known ?? (await transaction.vdisk.create({ data: demoVdisk, select: { id: true } }))
  await transaction.vdiskVersion.upsert({
    where: {
      organizationId_vdiskId_number: { organizationId, vdiskId: vdisk.id, number: demoVersion.number },
    },
    create: { organizationId, vdiskId: vdisk.id, ...demoVersion },
    update: {},
    select: { id: true },
  })
  // An object that a person deleted stays deleted.
  if (!known)
    await transaction.vdiskVersion.create({
      data: { organizationId, vdiskId: vdisk.id, ...testVersion },
      select: { id: true },
    })
  return vdisk.id
}

interface DeviceOptions {
  organizationId: string
  siteId: string
  vdiskId: string
}

/** Six devices in two collections: 02:bf:00:00:00:01 to :06, the addresses that bootfarm-sim uses. */
async function ensureDevices(
  transaction: DbTransaction,
  { organizationId, siteId, vdiskId }: DeviceOptions,
): Promise<void> {
  const collectionIds: string[] = []
  for (const name of ['Classroom', 'Lab']) {
    const place = { organizationId, siteId, name }
    const collection =
      (await transaction.collection.findFirst({ where: place, select: { id: true } })) ??
      (await transaction.collection.create({ data: { ...place, vdiskId }, select: { id: true } }))
    collectionIds.push(collection.id)
  }
  for (let number = 1; number <= deviceCount; number++) {
    const mac = `02:bf:00:00:00:${String(number).padStart(2, '0')}`
    const isFirstHalf = number <= deviceCount / 2
    const collectionId = collectionIds[isFirstHalf ? 0 : 1] ?? ''
    const name = `demo-${String(number).padStart(2, '0')}`
    await transaction.device.createMany({
      data: { organizationId, siteId, collectionId, mac, name },
      skipDuplicates: true,
    })
  }
}

async function hasEnrolledEdge({ db }: SystemContext, { organizationId, siteId }: DemoRows): Promise<boolean> {
  const edge = await db.edge.findFirst({
    where: { organizationId, siteId, revokedAt: null },
    select: { id: true },
  })
  return edge !== null
}
