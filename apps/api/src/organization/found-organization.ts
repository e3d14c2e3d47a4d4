import { randomBytes, randomUUIDv7 } from 'node:crypto'
import { type Db, inOrganization } from '@bootfarm/db'
import type { z } from 'zod'
import type { DbOrTransaction, PersonContext, PlatformContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { recordPlatformEvent } from '../events/record-event.ts'
import { newMemberActor } from '../rules/actor.ts'
import type { Role } from '../rules/permissions.ts'
import type { TenancySettings } from '../rules/tenancy.ts'
import type { acceptedView, foundInput } from './schema.ts'
import { newSigningKey } from './signing-keys.ts'

/**
 * Makes an organization that the person owns, with the quotas of self-service; the session works in it from now on.
 * Throws `sign_up_closed`, and `conflict` where the person has made as many as one may.
 */
export async function foundOrganization(
  context: PersonContext & { tenancy: TenancySettings },
  { name }: z.output<typeof foundInput>,
): Promise<z.infer<typeof acceptedView>> {
  const { db, clock, person, request, tenancy } = context
  requireSelfService(context)
  const { userId } = person
  const slug = await freeSlug(db, name)
  const organizationId = randomUUIDv7()
  await inOrganization(db, organizationId, async (transaction) => {
    // Two at once do so one after the other, and are both counted.
    await transaction.$queryRaw`select id from "user" where id = ${userId}::uuid for update`
    const [row] = await transaction.$queryRaw<{ count: bigint }[]>`
      select organizations_founded_by(${userId}::uuid) as count`
    if (Number(row?.count) >= tenancy.organizationsPerPersonMax)
      throw new AppError('conflict', {
        public: `You have created ${row?.count} organizations, which is the limit. Delete one first, or contact the operator of this installation.`,
      })
    await insertOrganization(transaction, {
      id: organizationId,
      slug,
      name,
      ownerUserId: userId,
      foundedByUserId: userId,
    })
    await transaction.organizationQuota.createMany({
      data: Object.entries(tenancy.quotas).map(([quota, countMax]) => ({
        organizationId,
        name: quota,
        countMax,
      })),
    })
    await transaction.session.update({
      where: { id: person.sessionId },
      data: { activeOrganizationId: organizationId },
      select: { id: true },
    })
    await recordChange(
      { db: transaction, clock, actor: newMemberActor(person, { id: organizationId, name }), request },
      { kind: 'organization', id: organizationId, name, before: null, after: { name, owner: person.email } },
    )
    await recordPlatformEvent(
      { db: transaction, clock },
      { action: 'organization.founded', actorUserId: userId, organizationId, before: null, after: null },
    )
  })
  return { organizationId, organizationName: name }
}

/** Throws `sign_up_closed`. */
export function requireSelfService({ tenancy }: { tenancy: TenancySettings }): void {
  if (!tenancy.isSelfService) throw new AppError('sign_up_closed')
}

interface NewOrganization {
  slug: string
  name: string
  ownerUserId?: string
  /** The creator by self-service. */
  foundedByUserId?: string
}

/** An organization with the key that signs its desired states, and its feed. Returns the id; `slug` is unique. */
export async function createOrganization({ db }: PlatformContext, fields: NewOrganization): Promise<string> {
  const id = randomUUIDv7()
  await inOrganization(db, id, (transaction) => insertOrganization(transaction, { ...fields, id }))
  return id
}

/** Like `createOrganization`, in a transaction that is already in the future organization. */
export async function insertOrganization(
  db: DbOrTransaction,
  { id, slug, name, ownerUserId, foundedByUserId }: NewOrganization & { id: string },
): Promise<void> {
  await db.organization.create({
    data: {
      id,
      slug,
      name,
      foundedByUserId: foundedByUserId ?? null,
      bootFeed: { create: {} },
      signingKeys: { create: newSigningKey(id) },
    },
    select: { id: true },
  })
  if (ownerUserId) await ensureMember(db, { organizationId: id, userId: ownerUserId, role: 'owner' })
}

interface NewMember {
  organizationId: string
  userId: string
  /** In the whole organization. */
  role: Role
}

/** Makes the person a member with this role; a member keeps the existing roles. */
export async function ensureMember(db: DbOrTransaction, { organizationId, userId, role }: NewMember): Promise<void> {
  const member = await db.membership.findUnique({
    where: { organizationId_userId: { organizationId, userId } },
    select: { userId: true },
  })
  if (member) return
  await db.formerMember.deleteMany({ where: { organizationId, userId } })
  await db.membership.create({ data: { organizationId, userId } })
  await db.roleGrant.create({ data: { organizationId, userId, role }, select: { id: true } })
}

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
