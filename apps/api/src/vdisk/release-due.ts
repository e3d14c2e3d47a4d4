import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import type { PlatformContext } from '../context/service-context.ts'
import { jobDoer, recordDoings } from '../events/record-change.ts'
import { withVdiskHeld } from './hold-vdisk.ts'

/** Per organization and transaction; the next run continues. */
const atOnceMax = 200

/**
 * Makes versions the default whose instant has come, and announces it. Edges do so by themselves: nothing waits for
 * this.
 */
export async function releaseDue({ db, clock }: PlatformContext): Promise<void> {
  const now = clock()
  const rows = await db.$queryRaw<{ id: string }[]>`
    select id::text from organizations_with_due_releases(${now}) as id`
  await forEachOrganization(
    { db },
    (organizationId) => releaseOf({ db, clock }, organizationId, now),
    rows.map(({ id }) => id),
  )
}

interface DueRow {
  id: string
  name: string
  farm_id: string
  number: number
}

async function releaseOf({ db, clock }: PlatformContext, organizationId: string, now: Date): Promise<void> {
  const due = await inOrganization(
    db,
    organizationId,
    (transaction) => transaction.$queryRaw<DueRow[]>`
      select vdisk.id::text, vdisk.name, vdisk.farm_id::text, version.number from vdisk
      join vdisk_version as version on version.organization_id = vdisk.organization_id and version.id = vdisk.pending_version_id
      where vdisk.organization_id = ${organizationId}::uuid and version.released_at <= ${now}
      order by version.released_at, vdisk.id limit ${atOnceMax}`,
  )
  for (const { id, name, farm_id: farmId, number } of due)
    await inOrganization(db, organizationId, async (transaction) => {
      const context = { db: transaction, clock, actor: { organizationId } }
      const isSettled = await withVdiskHeld(context, { vdiskId: id }, async ({ settled }) => settled)
      // Another change of the vDisk, or another API process, was first.
      if (!isSettled) return
      const place = { farmId, siteId: null, collectionId: null }
      await recordDoings({ db: transaction, now }, jobDoer(organizationId, 'release of versions'), [
        {
          action: 'version.release',
          kind: 'vdisk',
          id,
          name,
          place,
          before: { pending: number },
          after: { default: number },
        },
      ])
    })
}
