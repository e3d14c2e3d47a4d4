import type { z } from 'zod'
import type { PersonContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import type { Grant } from '../rules/actor.ts'
import { done, type doneView } from '../rules/changed-object.ts'
import type { chooseOrganizationInput, ownOrganizationsView } from './schema.ts'

interface OwnOrganization {
  id: string
  name: string
  grants: Grant[]
}

/** The person's organizations, the one joined first before the others. */
export async function listOwnOrganizations({
  db,
  person,
}: PersonContext): Promise<z.infer<typeof ownOrganizationsView>> {
  const rows = await db.$queryRaw<OwnOrganization[]>`
    select organization_id::text as id, organization_name as name,
      grants_of(${person.userId}::uuid, organization_id) as grants
    from memberships_of(${person.userId}::uuid)`
  return rows.map(({ id, name, grants }) => ({
    id,
    name,
    roles: grants.map(({ role, scope }) => ({ role, isOfPart: scope.farmId !== null })),
  }))
}

/**
 * The session works in it from now on, and later ones begin there. Throws `not_found` where the person is no member.
 */
export async function chooseOrganization(
  context: PersonContext,
  { organizationId }: z.output<typeof chooseOrganizationInput>,
): Promise<z.infer<typeof doneView>> {
  const own = await listOwnOrganizations(context)
  if (!own.some(({ id }) => id === organizationId)) throw new AppError('not_found')
  await context.db.session.update({
    where: { id: context.person.sessionId },
    data: { activeOrganizationId: organizationId },
    select: { id: true },
  })
  await context.db.user.update({
    where: { id: context.person.userId },
    data: { lastOrganizationId: organizationId },
    select: { id: true },
  })
  return done
}
