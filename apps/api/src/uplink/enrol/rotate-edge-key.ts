import { type DbTransaction, inOrganization, Prisma } from '@bootfarm/db'
import { type EdgeKeyStatement, edgeKeyText } from '@bootfarm/proto/uplink'
import { uplinkSignedText, verifyText } from '@bootfarm/proto/uplink-signature'
import { lockRow, type PlatformContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import type { SignedRequest } from './authenticate-edge.ts'
import { recordOfEdge } from './record-of-edge.ts'

interface IdentityRow {
  organization_id: string
  site_id: string
  public_key: string
  revoked_at: Date | null
}

interface LockedEdge {
  name: string
  public_key: string
  revoked_at: Date | null
}

/**
 * Accepts an edge's newest key, by statements that lead to it from the key that is known here. The same statements get
 * the same answer again, even if the first answer was lost or this control plane was restored to a state before them.
 * Throws `edge_unknown`, `signature_invalid`, `edge_revoked`, `invalid_body`.
 */
export async function rotateEdgeKey(
  { db, clock }: PlatformContext,
  request: SignedRequest,
  { statements, address = null }: { statements: EdgeKeyStatement[]; address?: string | null },
): Promise<{ publicKey: string }> {
  const { edgeId } = request
  const [edge] = await db.$queryRaw<IdentityRow[]>`
    select organization_id::text, site_id::text, public_key, revoked_at from edge_identity(${edgeId}::uuid)`
  if (!edge) throw new AppError('edge_unknown')
  const newest = requireChain(edgeId, statements)
  // The sender proves that it has the newest key.
  if (!verifyText(uplinkSignedText(request), request.signature, newest)) throw new AppError('signature_invalid')
  if (edge.revoked_at) throw new AppError('edge_revoked')
  const { organization_id: organizationId } = edge
  await inOrganization(db, organizationId, async (transaction) => {
    const row = await lockRow<LockedEdge>(transaction, 'edge', {
      organizationId,
      id: edgeId,
      strength: 'update',
      columns: Prisma.sql`name, public_key, revoked_at`,
    })
    if (!row || row.revoked_at) throw new AppError('edge_revoked')
    if (row.public_key === newest) return
    const first = statements.findIndex(({ oldPublicKey }) => oldPublicKey === row.public_key)
    if (first < 0) throw new AppError('signature_invalid')
    const rotatedAt = clock()
    await takeKey(transaction, { organizationId, edgeId, publicKey: newest, rotatedAt })
    await transaction.edgeKey.createMany({
      data: statements.slice(first).map(({ oldPublicKey, newPublicKey, signature }) => ({
        organizationId,
        edgeId,
        rotatedAt,
        signature,
        publicKey: newPublicKey,
        previousKey: oldPublicKey,
      })),
      skipDuplicates: true,
    })
    await recordOfEdge({ db: transaction, now: rotatedAt }, { organizationId, edgeId, address }, (place) => [
      {
        action: 'edge.takeNewKey',
        kind: 'edge',
        id: edgeId,
        name: row.name,
        place,
        before: { publicKey: row.public_key },
        after: { publicKey: newest },
      },
    ])
  })
  return { publicKey: newest }
}

async function takeKey(
  transaction: DbTransaction,
  {
    organizationId,
    edgeId,
    publicKey,
    rotatedAt,
  }: {
    organizationId: string
    edgeId: string
    publicKey: string
    rotatedAt: Date
  },
): Promise<void> {
  try {
    await transaction.edge.updateMany({
      where: { organizationId, id: edgeId },
      data: { publicKey, keyRotatedAt: rotatedAt, rotateKeyFrom: null },
    })
  } catch (error) {
    if (error instanceof Prisma.PrismaClientKnownRequestError && error.code === 'P2002')
      throw new AppError('invalid_body', { public: 'This key belongs to another edge. Generate a new one.' })
    throw error
  }
}

/** Returns the key at which the statements end. Throws `signature_invalid`. */
function requireChain(edgeId: string, statements: EdgeKeyStatement[]): string {
  let last: string | undefined
  for (const statement of statements) {
    const { oldPublicKey, newPublicKey, signature } = statement
    const follows = last === undefined || last === oldPublicKey
    if (!follows || !verifyText(edgeKeyText(edgeId, statement), signature, oldPublicKey))
      throw new AppError('signature_invalid')
    last = newPublicKey
  }
  if (last === undefined) throw new AppError('invalid_body')
  return last
}
