import type { z } from 'zod'
import { type DbOrTransaction, ownRow, type ServiceContext } from '../context/service-context.ts'
import type { SitePlace } from '../discovery/public.ts'
import { heartbeatOf } from '../edge/public.ts'
import { AppError } from '../errors/app-error.ts'
import { bootProgramSetsOf, type bootProgramSetsView } from '../rules/boot-programs.ts'

/** Returns the sets that the site's edges reported in their last heartbeats. Throws `not_found`. */
export async function getBootProgramSets(
  { db, actor }: ServiceContext,
  siteId: string,
): Promise<z.infer<typeof bootProgramSetsView>> {
  const place = { organizationId: actor.organizationId, siteId }
  const site = await db.site.findUnique({ where: ownRow(place, siteId), select: { id: true } })
  if (!site) throw new AppError('not_found')
  return { sets: await readSets(db, place) }
}

/** Throws `conflict` for a set that no edge of the site reports. */
export async function requireReportedSet(
  db: DbOrTransaction,
  place: SitePlace,
  bootProgramSet: string | null,
): Promise<void> {
  if (bootProgramSet === null) return
  const sets = await readSets(db, place)
  if (sets.some(({ name }) => name === bootProgramSet)) return
  throw new AppError('conflict', {
    public: `No edge of this site has the boot programs “${bootProgramSet}”. Import them there with bootfarm-edge boot-files.`,
  })
}

async function readSets(db: DbOrTransaction, place: SitePlace) {
  const edges = await db.edge.findMany({
    where: { ...place, revokedAt: null },
    orderBy: [{ name: 'asc' }, { id: 'asc' }],
    select: { id: true, name: true, heartbeat: true },
  })
  return bootProgramSetsOf(
    edges.map(({ id, name, heartbeat }) => ({
      id,
      name,
      programs: heartbeatOf({ heartbeat })?.bootPrograms ?? [],
    })),
  )
}
