import type { DbOrTransaction } from '../service-context.ts'

/** The edge's own key where somebody ordered another in its place, and it has not said that it has one. */
export async function readKeyOrder(
  db: DbOrTransaction,
  { organizationId, edgeId }: { organizationId: string; edgeId: string },
): Promise<{ rotateKey?: string }> {
  const edge = await db.edge.findUnique({
    where: { organizationId_id: { organizationId, id: edgeId } },
    select: { publicKey: true, rotateKeyFrom: true },
  })
  return edge && edge.rotateKeyFrom === edge.publicKey ? { rotateKey: edge.publicKey } : {}
}
