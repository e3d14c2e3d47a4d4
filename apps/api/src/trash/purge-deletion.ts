import { inOrganization, Prisma } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import {
  type DbOrTransaction,
  type PlatformContext,
  type ServiceContext,
  withTrash,
} from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Change } from '../events/event-bus.ts'
import { jobDoer, recordChange, recordDoings } from '../events/record-change.ts'
import { trashKeptDays } from './schema.ts'
import { trashTables } from './trash-tables.ts'

const dayMs = 86_400_000
/** Deletions of an organization that one run purges; the next run continues. */
const purgedAtOnceMax = 100

/**
 * Permanently deletes the content of one deletion, with its boots. Throws `not_found`; `conflict` for a version that
 * devices run, or that edges still work on.
 */
export async function purgeDeletion(context: ServiceContext, deletionId: string): Promise<{ name: string }> {
  const { db, clock, actor } = context
  const { organizationId } = actor
  const deletion = await db.deletion.findFirst({
    where: { organizationId, id: deletionId },
    select: deletionSelect,
  })
  if (!deletion) throw new AppError('not_found')
  const kept = await whyKept(db, { organizationId, ...deletion })
  if (kept !== null) throw new AppError('conflict', { public: kept })
  await purge(db, { organizationId, deletionId, now: clock() })
  await recordChange(context, changeOf(deletion))
  return { name: deletion.objectName }
}

const deletionSelect = {
  kind: true,
  objectId: true,
  objectName: true,
  farmId: true,
  siteId: true,
  collectionId: true,
} as const
type DeletionRow = Prisma.DeletionGetPayload<{ select: typeof deletionSelect }>

function changeOf({ kind, objectId: id, objectName: name, ...place }: DeletionRow): Change {
  return { kind, id, name, place, before: { name }, after: null }
}

/**
 * Purges what has been in the trash for longer than `trashKeptDays`, of all organizations.
 * @returns how many deletions
 */
export async function purgeOldDeletions({ db, clock }: PlatformContext): Promise<number> {
  const now = clock()
  const before = new Date(now.getTime() - trashKeptDays * dayMs)
  let purged = 0
  await forEachOrganization({ db }, async (organizationId) => {
    const old = await inOrganization(db, organizationId, (transaction) =>
      transaction.deletion.findMany({
        where: { organizationId, OR: [{ purgeAt: { lte: now } }, { purgeAt: null, deletedAt: { lt: before } }] },
        orderBy: [{ deletedAt: 'asc' }, { id: 'asc' }],
        take: purgedAtOnceMax,
        select: { id: true, ...deletionSelect },
      }),
    )
    for (const { id: deletionId, ...deletion } of old) {
      const isPurged = await inOrganization(db, organizationId, async (transaction) => {
        // Tried again by the next run.
        if ((await whyKept(transaction, { organizationId, ...deletion })) !== null) return false
        await purge(transaction, { organizationId, deletionId, now })
        await recordDoings({ db: transaction, now }, jobDoer(organizationId, 'emptying of the trash'), [
          { action: 'trash.purge', ...changeOf(deletion) },
        ])
        return true
      })
      if (isPurged) purged += 1
    }
  })
  return purged
}

/**
 * Returns why a version cannot be purged yet; null: it can. It was not needed when it was deleted, but an edge without
 * the control plane may have booted it since.
 */
async function whyKept(
  db: DbOrTransaction,
  { organizationId, kind, objectId }: { organizationId: string; kind: string; objectId: string },
): Promise<string | null> {
  if (kind !== 'version') return null
  const devices = await db.$queryRaw<{ name: string }[]>`
    select device.name from device where device.organization_id = ${organizationId}::uuid
      and device.runs_version_id = ${objectId}::uuid and device.runs_boot_id = device.last_boot_id
      and (device.last_boot_outcome is null or device.last_boot_outcome = 'ready')
      and not exists (select from power_order where power_order.organization_id = device.organization_id
        and power_order.taken_boot_id = device.last_boot_id)
    order by device.name, device.id limit 1`
  if (devices[0])
    return `The device ${devices[0].name} runs this version. Restart what runs it, then empty the trash again.`
  const jobs = await db.storeJob.count({
    where: { organizationId, versionId: objectId, state: { in: ['queued', 'running'] }, edge: { revokedAt: null } },
  })
  return jobs === 0 ? null : 'Edges have unfinished store jobs on this version. Wait until they end, or cancel them.'
}

interface Purged {
  organizationId: string
  deletionId: string
  now: Date
}

/**
 * Rows that belong to a purged object are purged with it, even if they were deleted before. Rows that only name it, in
 * the trash or not, lose the name. Boots of a device stay, as boots of an unregistered machine; those of a site are
 * deleted.
 */
async function purge(db: DbOrTransaction, { organizationId, deletionId, now }: Purged): Promise<void> {
  const own = (table: Prisma.Sql, ...within: Prisma.Sql[]) =>
    Prisma.sql`select id from ${table} where organization_id = ${organizationId}::uuid
      and (${Prisma.join([Prisma.sql`deletion_id = ${deletionId}::uuid`, ...within], ' or ')})`
  const farms = own(Prisma.sql`farm`)
  const sites = own(Prisma.sql`site`, Prisma.sql`farm_id in (${farms})`)
  const collections = own(Prisma.sql`collection`, Prisma.sql`site_id in (${sites})`)
  const devices = own(Prisma.sql`device`, Prisma.sql`collection_id in (${collections})`)
  const vdisks = own(Prisma.sql`vdisk`, Prisma.sql`farm_id in (${farms})`)
  const stores = own(Prisma.sql`store`, Prisma.sql`farm_id in (${farms})`)
  const versions = own(Prisma.sql`vdisk_version`, Prisma.sql`vdisk_id in (${vdisks})`)
  const menus = own(Prisma.sql`boot_menu`, Prisma.sql`farm_id in (${farms})`)
  const ofOrganization = Prisma.sql`organization_id = ${organizationId}::uuid`
  const boots = Prisma.sql`select id from boot where ${ofOrganization} and site_id in (${sites})`
  const statements = [
    // Before the rows go: what edges' stores hold of these versions goes there, too.
    Prisma.sql`insert into store_job (organization_id, id, edge_id, kind, vdisk_id, version_id, asked_by_name, asked_at)
      select stored.organization_id, gen_random_uuid(), stored.edge_id, 'delete', version.vdisk_id, version.id, 'emptying of the trash', ${now}
      from edge_version as stored
      join vdisk_version as version on version.organization_id = stored.organization_id and version.id = stored.version_id
      join edge on edge.organization_id = stored.organization_id and edge.id = stored.edge_id
      where stored.${ofOrganization} and stored.state <> 'missing' and version.id in (${versions}) and edge.revoked_at is null
        and edge.site_id not in (${sites})`,
    Prisma.sql`update power_order set taken_boot_id = null where ${ofOrganization} and taken_boot_id in (${boots})`,
    Prisma.sql`delete from boot_detail where ${ofOrganization} and boot_id in (${boots})`,
    Prisma.sql`delete from boot_key where ${ofOrganization} and boot_id in (${boots})`,
    Prisma.sql`delete from boot where ${ofOrganization} and site_id in (${sites})`,
    Prisma.sql`delete from join_token where ${ofOrganization} and site_id in (${sites})`,
    Prisma.sql`delete from edge where ${ofOrganization} and site_id in (${sites})`,
    Prisma.sql`update collection set template_device_id = null where ${ofOrganization} and template_device_id in (${devices})`,
    Prisma.sql`update collection set vdisk_id = null where ${ofOrganization} and vdisk_id in (${vdisks})`,
    Prisma.sql`update device set vdisk_id = null where ${ofOrganization} and vdisk_id in (${vdisks})`,
    Prisma.sql`update vdisk set store_id = null where ${ofOrganization} and store_id in (${stores})`,
    Prisma.sql`delete from device where ${ofOrganization} and id in (${devices})`,
    Prisma.sql`delete from collection where ${ofOrganization} and id in (${collections})`,
    Prisma.sql`delete from boot_menu where ${ofOrganization} and id in (${menus})`,
    Prisma.sql`delete from vdisk_version where ${ofOrganization} and id in (${versions})`,
    Prisma.sql`delete from vdisk where ${ofOrganization} and id in (${vdisks})`,
    Prisma.sql`delete from store where ${ofOrganization} and id in (${stores})`,
    Prisma.sql`delete from site where ${ofOrganization} and id in (${sites})`,
    Prisma.sql`delete from farm where ${ofOrganization} and id in (${farms})`,
    Prisma.sql`delete from deletion where ${ofOrganization} and id not in (${Prisma.join(
      trashTables.map(
        ({ table }) => Prisma.sql`select deletion_id from ${table} where ${ofOrganization} and deletion_id is not null`,
      ),
      ' union all ',
    )})`,
  ]
  await withTrash(db, async () => {
    for (const statement of statements) await db.$executeRaw(statement)
  })
}
