import type { z } from 'zod'
import { type DbOrTransaction, lockOrganization } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { recordPlatformEvent } from '../events/record-event.ts'
import { deletionAskedMail, deletionCancelledMail, type Mail } from '../rules/mail.ts'
import { dayMs } from '../rules/utc-day.ts'
import { getOrganization, type SettingsContext } from './rows.ts'
import type { askDeletionInput, organizationView } from './schema.ts'

type DeletionContext = SettingsContext & { webUrl: string }

/** The work after the transaction. */
export interface DeletionAnswer {
  view: z.infer<typeof organizationView>
  mails: Mail[]
}

/**
 * The organization will be deleted when the grace period ends; until then everything works. A second request keeps the
 * first time. Throws `invalid` for another name, `forbidden` for an API key.
 */
export async function askDeletion(
  context: DeletionContext,
  { name }: z.output<typeof askDeletionInput>,
): Promise<DeletionAnswer> {
  const { db, clock, actor, tenancy } = context
  requirePerson(context)
  await lock(context)
  const before = await getOrganization(context)
  if (name.trim() !== before.name)
    throw new AppError('invalid', { public: `To delete this organization, type its name: ${before.name}` })
  if (before.deleteAfter) return { view: before, mails: [] }
  const now = clock()
  const deleteAfter = new Date(now.getTime() + tenancy.deletionGraceDays * dayMs)
  await db.organization.updateMany({
    where: { id: before.id },
    data: { deleteAfter, deleteAskedAt: now, deleteAskedByUserId: actor.userId },
  })
  await record(context, {
    action: 'organization.askDeletion',
    name: before.name,
    before: null,
    after: deleteAfter,
  })
  const facts = {
    organizationName: before.name,
    askedByName: actor.userName,
    deleteAfter,
    url: pageOf(context),
  }
  const owners = await ownersOf(db, before.id)
  const mails = owners.map(({ email }) => deletionAskedMail({ ...facts, email }))
  return { view: await getOrganization(context), mails }
}

/** Everything stays. Throws `conflict` once the deletion has started, `forbidden` for an API key. */
export async function cancelDeletion(context: DeletionContext): Promise<DeletionAnswer> {
  const { db, clock, actor } = context
  requirePerson(context)
  await lock(context)
  const before = await getOrganization(context)
  if (!before.deleteAfter) return { view: before, mails: [] }
  if (new Date(before.deleteAfter) <= clock())
    throw new AppError('conflict', {
      public: 'The deletion can no longer be cancelled: the organization is being deleted.',
    })
  await db.organization.updateMany({
    where: { id: before.id },
    data: { deleteAfter: null, deleteAskedAt: null, deleteAskedByUserId: null },
  })
  await record(context, {
    action: 'organization.cancelDeletion',
    name: before.name,
    before: new Date(before.deleteAfter),
    after: null,
  })
  const facts = { organizationName: before.name, askedByName: actor.userName, url: pageOf(context) }
  const owners = await ownersOf(db, before.id)
  const mails = owners.map(({ email }) => deletionCancelledMail({ ...facts, email }))
  return { view: await getOrganization(context), mails }
}

function requirePerson({ actor }: DeletionContext): void {
  if (actor.kind !== 'person')
    throw new AppError('forbidden', { public: 'Only an owner of the organization can delete it.' })
}

function pageOf({ webUrl }: DeletionContext): string {
  return new URL('/organization', webUrl).toString()
}

async function lock({ db, actor }: DeletionContext): Promise<void> {
  await lockOrganization(db, actor.organizationId, 'update')
}

interface Recorded {
  action: string
  name: string
  before: Date | null
  after: Date | null
}

async function record(context: DeletionContext, { action, name, before, after }: Recorded): Promise<void> {
  const { actor } = context
  const fieldsOf = (at: Date | null) => ({ deleteAfter: at?.toISOString() ?? null })
  const change = { before: fieldsOf(before), after: fieldsOf(after) }
  const { organizationId, userId: actorUserId } = actor
  await recordChange(context, { kind: 'organization', id: organizationId, name, ...change })
  await recordPlatformEvent(context, { action, actorUserId, organizationId, ...change })
}

/** The organization's owners, for mails to them. */
export async function ownersOf(
  db: DbOrTransaction,
  organizationId: string,
): Promise<{ name: string; email: string }[]> {
  const rows = await db.membership.findMany({
    where: { organizationId, grants: { some: { role: 'owner' } } },
    select: { user: { select: { name: true, email: true } } },
  })
  return rows.map(({ user }) => user)
}
