import { type DbTransaction, Prisma } from '@bootfarm/db'
import type { AuthenticatedEdge, SystemContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { findBoot } from './read-boots.ts'

interface Kept {
  bootId: string
  /** A row for each boot, with `site_id` and `received_at`. */
  table: 'boot_capture' | 'boot_files_read'
  /** The newest of a site are kept. */
  perSiteMax: number
  write: (transaction: DbTransaction) => Promise<unknown>
}

/**
 * Keeps what an edge sends of a boot beside its report, and drops the site's oldest beyond the limit. Throws
 * `boot_unknown` if this edge has not reported the boot.
 */
export async function keepOfBoot(
  { db }: Pick<SystemContext, 'db'>,
  { organizationId, edgeId, siteId }: AuthenticatedEdge,
  { bootId, table, perSiteMax, write }: Kept,
): Promise<void> {
  const rows = Prisma.raw(table)
  await db.$transaction(async (transaction) => {
    const boot = await findBoot({ db: transaction, actor: { organizationId } }, bootId)
    if (boot?.edgeId !== edgeId) throw new AppError('boot_unknown')
    await write(transaction)
    await transaction.$executeRaw`
      delete from ${rows} where organization_id = ${organizationId}::uuid and boot_id in (
        select boot_id from ${rows} where organization_id = ${organizationId}::uuid and site_id = ${siteId}::uuid
        order by received_at desc, boot_id desc offset ${perSiteMax})`
  })
}
