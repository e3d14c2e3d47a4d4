import { inOrganization } from '@bootfarm/db'
import type { PlatformContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'

export interface AcceptedVersions {
  oldest: number
  newest: number
}

/** Returns the error for an unsupported version; null if the version is accepted. */
export function versionRefusal(version: number, { oldest, newest }: AcceptedVersions): AppError | null {
  const extra = { uplinkVersion: version, oldestVersion: oldest, newestVersion: newest }
  if (version < oldest)
    return new AppError('edge_too_old', {
      public: `This edge uses version ${version} of the uplink, but this control plane requires ${oldest} or newer. Update the edge: run its installation line again.`,
      extra,
    })
  if (version > newest)
    return new AppError('edge_too_new', {
      public: `This edge uses version ${version} of the uplink, but this control plane supports ${newest} at most. Update the control plane.`,
      extra,
    })
  return null
}

/** Throws `edge_too_old` or `edge_too_new`, and records it for the edge's page. */
export async function requireVersion(
  { db, clock }: PlatformContext,
  { organizationId, edgeId }: { organizationId: string; edgeId: string },
  { request, accepted }: { request: { uplinkVersion: number }; accepted: AcceptedVersions },
): Promise<void> {
  const refusal = versionRefusal(request.uplinkVersion, accepted)
  if (!refusal) return
  await inOrganization(db, organizationId, (transaction) =>
    transaction.edge.updateMany({
      where: { organizationId, id: edgeId },
      data: { refusedCode: refusal.code, refusedVersion: request.uplinkVersion, refusedAt: clock() },
    }),
  )
  throw refusal
}
