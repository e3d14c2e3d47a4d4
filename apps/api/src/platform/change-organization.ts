import { inOrganization, type Prisma, type TenantDb } from '@bootfarm/db'
import type { z } from 'zod'
import { lockOrganization, type PersonContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordPlatformEvent } from '../events/record-event.ts'
import { getPlatformOrganization } from './list-organizations.ts'
import type { platformOrganizationView, setQuotasInput, setSuspendedInput } from './schema.ts'

/** Existing objects stay, even if there are more: only additions are refused. Throws `not_found`. */
export async function setQuotas(
  context: PersonContext,
  { organizationId, quotas }: z.output<typeof setQuotasInput>,
): Promise<z.infer<typeof platformOrganizationView>> {
  await inLockedOrganization(context, organizationId, async (db) => {
    const rows = await db.organizationQuota.findMany({
      where: { organizationId },
      select: { name: true, countMax: true },
    })
    const before = Object.fromEntries(rows.map(({ name, countMax }) => [name, countMax]))
    const after = { ...before }
    for (const [name, countMax] of Object.entries(quotas)) {
      if (countMax === null) {
        delete after[name]
        await db.organizationQuota.deleteMany({ where: { organizationId, name } })
      } else {
        after[name] = countMax
        await db.organizationQuota.upsert({
          where: { organizationId_name: { organizationId, name } },
          create: { organizationId, name, countMax },
          update: { countMax },
          select: { name: true },
        })
      }
    }
    await record(context, db, { action: 'organization.setQuotas', organizationId, before, after })
  })
  return getPlatformOrganization(context, organizationId)
}

/** Its people may read and change nothing; its machines keep booting. Throws `not_found`. */
export async function setSuspended(
  context: PersonContext,
  { organizationId, suspended }: z.output<typeof setSuspendedInput>,
): Promise<z.infer<typeof platformOrganizationView>> {
  await inLockedOrganization(context, organizationId, async (db, row) => {
    if ((row.suspendedAt !== null) === suspended) return
    await db.organization.updateMany({
      where: { id: organizationId },
      data: { suspendedAt: suspended ? context.clock() : null },
    })
    await record(context, db, {
      action: suspended ? 'organization.suspend' : 'organization.unsuspend',
      organizationId,
      before: { suspended: !suspended },
      after: { suspended },
    })
  })
  return getPlatformOrganization(context, organizationId)
}

async function inLockedOrganization(
  { db }: PersonContext,
  organizationId: string,
  work: (db: TenantDb, row: { suspendedAt: Date | null }) => Promise<void>,
): Promise<void> {
  await inOrganization(db, organizationId, async (transaction) => {
    await lockOrganization(transaction, organizationId, 'update')
    const row = await transaction.organization.findUnique({
      where: { id: organizationId },
      select: { suspendedAt: true },
    })
    if (!row) throw new AppError('not_found')
    await work(transaction, row)
  })
}

interface Recorded {
  action: string
  organizationId: string
  before: Record<string, number | boolean>
  after: Record<string, number | boolean>
}

/** In the platform's log with the person; in the organization's own log as an operator of the installation. */
async function record(
  { clock, person, request }: PersonContext,
  db: TenantDb,
  { action, organizationId, before, after }: Recorded,
): Promise<void> {
  await recordPlatformEvent({ db, clock }, { action, actorUserId: person.userId, organizationId, before, after })
  await db.auditEntry.createMany({
    data: {
      organizationId,
      at: clock(),
      actorKind: 'platform',
      actorId: null,
      action: request.action,
      actorName: 'who runs this installation',
      objectKind: 'organization',
      objectId: organizationId,
      before: before as Prisma.InputJsonObject,
      after: after as Prisma.InputJsonObject,
      requestId: request.id,
    },
  })
}
