import type { DbTransaction, TenantDb } from '@bootfarm/db'
import type { z } from 'zod'
import type { setOfCollectionInput, setOfDeviceInput, setOfSiteInput } from '../../domain/boot-programs.ts'
import { AppError } from '../../errors/app-error.ts'
import { notify } from '../notifications.ts'
import type { ServiceContext } from '../service-context.ts'
import { requireReportedSet } from './boot-program-sets.ts'

type Chosen = { bootProgramSet: string | null }

/** Which programs the site's devices are given that have no others. Throws `not_found`, `conflict` for a set that no edge of it has. */
export function chooseForSite(
  { db, actor: { organizationId } }: ServiceContext,
  { siteId, bootProgramSet }: z.output<typeof setOfSiteInput>,
): Promise<Chosen> {
  return choose(db, bootProgramSet, async (transaction) => {
    const where = { organizationId, id: siteId }
    const { count } = await transaction.site.updateMany({ where, data: { bootProgramSet } })
    return count === 0 ? null : { organizationId, siteId }
  })
}

/** As `chooseForSite`, in place of the site's. */
export function chooseForCollection(
  { db, actor: { organizationId } }: ServiceContext,
  { collectionId, bootProgramSet }: z.output<typeof setOfCollectionInput>,
): Promise<Chosen> {
  return choose(db, bootProgramSet, async (transaction) => {
    const where = { organizationId, id: collectionId }
    const [row] = await transaction.collection.updateManyAndReturn({
      where,
      data: { bootProgramSet },
      select: { siteId: true },
    })
    return row ? { organizationId, siteId: row.siteId } : null
  })
}

/** As `chooseForSite`, in place of the collection's and the site's. */
export function chooseForDevice(
  { db, actor: { organizationId } }: ServiceContext,
  { deviceId, bootProgramSet }: z.output<typeof setOfDeviceInput>,
): Promise<Chosen> {
  return choose(db, bootProgramSet, async (transaction) => {
    const where = { organizationId, id: deviceId }
    const [row] = await transaction.device.updateManyAndReturn({
      where,
      data: { bootProgramSet },
      select: { siteId: true },
    })
    return row ? { organizationId, siteId: row.siteId } : null
  })
}

type Write = (transaction: DbTransaction) => Promise<{ organizationId: string; siteId: string } | null>

function choose(db: TenantDb, bootProgramSet: string | null, write: Write): Promise<Chosen> {
  return db.$transaction(async (transaction) => {
    const place = await write(transaction)
    if (!place) throw new AppError('not_found')
    await requireReportedSet(transaction, place, bootProgramSet)
    await notify(transaction, { state: { siteId: place.siteId } })
    return { bootProgramSet }
  })
}
