import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { deletionBegunMail, type SendMail } from '../rules/mail.ts'
import { ownersOf } from './ask-deletion.ts'

/** Edges that reach the control plane in this time learn that they are revoked; later ones are unknown. */
export const edgesToldMs = 3_600_000
const rowsAtOnceMax = 5_000

type DeletionContext = PlatformContext & { sendMail: SendMail }

/**
 * Deletes the organizations whose grace period is over. Each step is a separate transaction and can be repeated: after
 * a kill, the next run finds what is left.
 */
export async function deleteDueOrganizations(context: DeletionContext): Promise<void> {
  const { db, clock } = context
  const due = await db.$queryRaw<{ id: string }[]>`
    select id::text from organizations_to_delete(${clock()}) as id`
  await forEachOrganization(
    context,
    (organizationId) => deleteOrganization(context, organizationId),
    due.map(({ id }) => id),
  )
}

async function deleteOrganization(context: DeletionContext, organizationId: string): Promise<void> {
  const { db, clock } = context
  const beganAt = await begin(context, organizationId)
  if (!beganAt || clock().getTime() - beganAt.getTime() < edgesToldMs) return
  for (;;) {
    const [row] = await db.$queryRaw<{ removed: bigint }[]>`
      select delete_organization_rows(${organizationId}::uuid, ${rowsAtOnceMax}) as removed`
    if (!row || row.removed === 0n) break
  }
  await db.$executeRaw`select delete_organization(${organizationId}::uuid, ${clock()})`
}

/**
 * Nobody is a member any more, and no key and no edge is accepted.
 * @returns when that happened; null if it was stopped meanwhile
 */
async function begin({ db, clock, sendMail }: DeletionContext, organizationId: string): Promise<Date | null> {
  const now = clock()
  const begun = await inOrganization(db, organizationId, async (transaction) => {
    const before = await transaction.organization.findUnique({
      where: { id: organizationId },
      select: { name: true, deletingAt: true },
    })
    const owners = before?.deletingAt ? [] : await ownersOf(transaction, organizationId)
    const [row] = await transaction.$queryRaw<{ at: Date | null }[]>`
      select begin_deleting_organization(${organizationId}::uuid, ${now}) as at`
    if (!before || !row?.at) return null
    return { at: row.at, owners, name: before.name }
  })
  for (const { email } of begun?.owners ?? [])
    await sendMail(deletionBegunMail({ email, organizationName: begun?.name ?? '' }))
  return begun?.at ?? null
}
