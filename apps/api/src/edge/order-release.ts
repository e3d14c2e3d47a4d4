import type { z } from 'zod'
import { type DbOrTransaction, ownRow, type ServiceContext } from '../context/service-context.ts'
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
  if (version !== null) await requireRelease(repository, version, [edge.arch])
  const change = await setWantedRelease(db, { organizationId: actor.organizationId, ...edge, id: edgeId }, version)
  await recordChange(context, change)
  return { version, attempt: change.after.releaseAttempt }
}

/** Throws `conflict` where the release does not exist for one of these processors. */
export async function requireRelease(repository: UpdateRepository, version: string, archs: string[]): Promise<void> {
  const has = (await repository.releases()).get(version) ?? []
  const missing = archs.find((arch) => !has.includes(arch))
  if (missing)
    throw new AppError('conflict', {
      public: `This control plane has no release ${version} for ${missing}. Add it with scripts/release/repository.mjs.`,
    })
}

interface OrderedEdge {
  organizationId: string
  id: string
  name: string
  wantedRelease: string | null
  releaseAttempt: number
}

/** Each order has a higher number than the one before it. @returns the change for the audit log */
export async function setWantedRelease(db: DbOrTransaction, edge: OrderedEdge, version: string | null) {
  const { organizationId, id, name, wantedRelease, releaseAttempt } = edge
  const after = { wantedRelease: version, releaseAttempt: releaseAttempt + 1 }
  await db.edge.update({ where: ownRow({ organizationId }, id), data: after, select: { id: true } })
  return { kind: 'edge', id, name, before: { wantedRelease, releaseAttempt }, after }
}

export async function listReleases(repository: UpdateRepository): Promise<z.infer<typeof edgeReleases>> {
  const found = [...(await repository.releases())].map(([version, archs]) => ({ version, archs: archs.sort() }))
  const order = new Intl.Collator('en', { numeric: true })
  return { releases: found.sort((left, right) => order.compare(right.version, left.version)) }
}
