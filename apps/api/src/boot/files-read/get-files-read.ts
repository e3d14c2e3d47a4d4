import type { FilesRead } from '@bootfarm/proto/uplink'
import type { ServiceContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import { findBoot } from '../read-boots.ts'
import type { BootFilesRead } from './schema.ts'

/** What a boot read, by file. Throws `not_found` for a boot that there is not. */
export async function getFilesRead(context: ServiceContext, bootId: string): Promise<BootFilesRead> {
  const { db, actor } = context
  const boot = await findBoot(context, bootId)
  if (!boot) throw new AppError('not_found')
  const kept = await db.bootFilesRead.findUnique({
    where: { organizationId_bootId: { organizationId: actor.organizationId, bootId } },
    select: { receivedAt: true, report: true },
  })
  if (!kept) return null
  // Only `keepFilesRead` writes these, from a report that zod validated.
  const { cells, trace, programs, units, slowestUnits, unitChain, ...report } = kept.report as unknown as FilesRead
  return {
    ...report,
    receivedAt: kept.receivedAt.toISOString(),
    cells: cells.map(([index, bytes, firstUs]) => ({ index, bytes, firstUs })),
    trace: trace ?? null,
    programs: programs ?? [],
    units: units ?? [],
    slowestUnits: slowestUnits ?? [],
    unitChain: unitChain ?? [],
  }
}
