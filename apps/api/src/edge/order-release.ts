import type { z } from 'zod'
import { ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import type { UpdateRepository } from '../installation/public.ts'
import type { edgeReleases, orderedRelease, orderReleaseInput } from './schema.ts'

/**
 * Orders the release that an edge runs; the edge fetches it, and returns to the one before if it is not healthy. The
 * same release again makes an edge on which it failed try once more. Throws `not_found`; `conflict` for an edge that
 * was revoked or a release that does not exist for its processor.
 */
export async function orderRelease(
  context: ServiceContext,
  repository: UpdateRepository,
  { edgeId, version }: z.output<typeof orderReleaseInput>,
): Promise<z.infer<typeof orderedRelease>> {
  const { db, actor } = context
  const where = ownRow(actor, edgeId)
  const edge = await db.edge.findUnique({
    where,
    select: { name: true, arch: true, revokedAt: true, wantedRelease: true, releaseAttempt: true },
  })
  if (!edge) throw new AppError('not_found')
  if (edge.revokedAt) throw new AppError('conflict', { public: 'This edge was revoked.' })
  if (version !== null && !(await repository.releases()).get(version)?.includes(edge.arch))
    throw new AppError('conflict', {
      public: `This control plane has no release ${version} for ${edge.arch}. Add it with scripts/release/repository.mjs.`,
    })
  const attempt = edge.releaseAttempt + 1
  const after = { wantedRelease: version, releaseAttempt: attempt }
  await db.edge.update({ where, data: after, select: { id: true } })
  await recordChange(context, {
    kind: 'edge',
    id: edgeId,
    name: edge.name,
    before: { wantedRelease: edge.wantedRelease, releaseAttempt: edge.releaseAttempt },
    after,
  })
  return { version, attempt }
}

export async function listReleases(repository: UpdateRepository): Promise<z.infer<typeof edgeReleases>> {
  const found = [...(await repository.releases())].map(([version, archs]) => ({ version, archs: archs.sort() }))
  const order = new Intl.Collator('en', { numeric: true })
  return { releases: found.sort((left, right) => order.compare(right.version, left.version)) }
}
