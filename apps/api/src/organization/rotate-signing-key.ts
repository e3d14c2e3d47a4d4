import { signingKeyStatementsMax, signingKeyText } from '@bootfarm/proto/uplink'
import { lockOrganization, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { newSigningKey, readSigningKeys } from './signing-keys.ts'

/**
 * Signs desired states by a new key from now on. Edges take it by the old one's statement, those that are away when
 * they come back. The old key's private half is forgotten: what it could sign would be refused. Throws `conflict`.
 */
export async function rotateSigningKey(context: ServiceContext): Promise<{ id: string; publicKey: string }> {
  const {
    db,
    clock,
    actor: { organizationId },
  } = context
  await lockOrganization(db, organizationId, 'no key update')
  const { keys, newest } = await readSigningKeys(db, { organizationId })
  if (keys.length >= signingKeyStatementsMax)
    throw new AppError('conflict', {
      public: `The signing key was rotated ${signingKeyStatementsMax} times, which is the limit.`,
    })
  const next = newSigningKey(organizationId)
  const statement = newest.sign(
    signingKeyText(organizationId, { id: next.id, publicKey: next.publicKey, previousPublicKey: newest.publicKey }),
  )
  await db.signingKey.create({
    data: {
      organizationId,
      ...next,
      previousKey: newest.publicKey,
      statement,
      createdAt: clock(),
    },
    select: { id: true },
  })
  await db.signingKey.updateMany({
    where: { organizationId, id: newest.id },
    data: { seed: new Uint8Array() },
  })
  await recordChange(context, {
    kind: 'signing_key',
    id: next.id,
    name: 'signing key',
    before: { publicKey: newest.publicKey },
    after: { publicKey: next.publicKey },
  })
  return { id: next.id, publicKey: next.publicKey }
}
