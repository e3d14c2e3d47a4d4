/** The key of a row that belongs to the organization, as Prisma's `where` takes it. */
export function ownRow({ organizationId }: { organizationId: string }, id: string) {
  return { organizationId_id: { organizationId, id } }
}
