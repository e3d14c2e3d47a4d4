import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { TenancySettings } from '../rules/tenancy.ts'
import type { organizationView } from './schema.ts'

export type SettingsContext = ServiceContext & { tenancy: TenancySettings }

const organizationSelect = {
  id: true,
  name: true,
  slug: true,
  revision: true,
  createdAt: true,
  suspendedAt: true,
  deleteAfter: true,
  deleteAskedAt: true,
} satisfies Prisma.OrganizationSelect

/** The actor's own. */
export async function getOrganization({
  db,
  actor,
  tenancy,
}: SettingsContext): Promise<z.infer<typeof organizationView>> {
  const row = await db.organization.findUnique({
    where: { id: actor.organizationId },
    select: organizationSelect,
  })
  if (!row) throw new AppError('not_found')
  const { id, name, slug, revision, createdAt, suspendedAt, deleteAfter, deleteAskedAt } = row
  return {
    id,
    name,
    slug,
    revision,
    createdAt: createdAt.toISOString(),
    suspendedAt: suspendedAt?.toISOString() ?? null,
    deleteAfter: deleteAfter?.toISOString() ?? null,
    deleteAskedAt: deleteAskedAt?.toISOString() ?? null,
    deletionGraceDays: tenancy.deletionGraceDays,
    contact: tenancy.contact,
  }
}
