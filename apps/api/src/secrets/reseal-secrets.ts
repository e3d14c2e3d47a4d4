import { inOrganization } from '@bootfarm/db'
import { forEachOrganization } from '../context/for-each-organization.ts'
import { type DbOrTransaction, type PlatformContext, withTrash } from '../context/service-context.ts'
import { kept, opened, secretKeys } from './kept-secrets.ts'
import { isNewestSeal, openSecret, type SecretPlace } from './secret-keys.ts'

/**
 * Seals with the newest key each secret that another one sealed, or that lies in clear. It may run beside the API and
 * again: a secret that somebody replaces meanwhile stays as it is. Returns how many it sealed.
 */
export async function resealSecrets({ db }: PlatformContext): Promise<number> {
  let count = 0
  await forEachOrganization({ db }, async (organizationId) => {
    count += await inOrganization(db, organizationId, async (transaction) => {
      const seeds = await resealSeeds(transaction, organizationId)
      const webhooks = await resealWebhooks(transaction, organizationId)
      return seeds + webhooks + (await withTrash(transaction, () => resealSites(transaction, organizationId)))
    })
  })
  return count
}

async function resealSeeds(db: DbOrTransaction, organizationId: string): Promise<number> {
  const rows = await db.signingKey.findMany({ where: { organizationId }, select: { id: true, seed: true } })
  let count = 0
  for (const { id, seed } of rows) {
    const renewed = renew({ kind: 'signing_key', organizationId, id }, seed)
    if (!renewed) continue
    count += (await db.signingKey.updateMany({ where: { organizationId, id, seed }, data: { seed: renewed } })).count
  }
  return count
}

async function resealWebhooks(db: DbOrTransaction, organizationId: string): Promise<number> {
  const rows = await db.webhookEndpoint.findMany({
    where: { organizationId },
    select: { id: true, secret: true, previousSecret: true },
  })
  let count = 0
  for (const { id, secret, previousSecret } of rows) {
    const place: SecretPlace = { kind: 'webhook', organizationId, id }
    const [newest, previous] = [renew(place, secret), previousSecret && renew(place, previousSecret)]
    if (!newest && !previous) continue
    const { count: changed } = await db.webhookEndpoint.updateMany({
      where: { organizationId, id, secret },
      data: { ...(newest ? { secret: newest } : {}), ...(previous ? { previousSecret: previous } : {}) },
    })
    count += changed
  }
  return count
}

async function resealSites(db: DbOrTransaction, organizationId: string): Promise<number> {
  const rows = await db.site.findMany({
    where: { organizationId, edgeKey: { not: null } },
    select: { id: true, edgeKey: true },
  })
  let count = 0
  for (const { id, edgeKey } of rows) {
    const renewed = edgeKey && renew({ kind: 'site', organizationId, id }, edgeKey)
    if (!renewed) continue
    const changed = await db.site.updateMany({ where: { organizationId, id, edgeKey }, data: { edgeKey: renewed } })
    count += changed.count
  }
  return count
}

/** Null for a secret that the newest key has sealed. */
function renew(place: SecretPlace, secret: Uint8Array): Uint8Array<ArrayBuffer> | null {
  return isNewestSeal(secretKeys(), secret) ? null : kept(place, opened(place, secret))
}

/**
 * Opens the signing keys of one organization, so that an API without the right key says so at its start and not to each
 * edge. Throws `SecretNotOpened` as an error whose message says what to do.
 */
export async function requireSecretKeys({ db }: PlatformContext): Promise<void> {
  const [first] = await db.$queryRaw<{ id: string }[]>`select id::text from organization_ids() as id limit 1`
  if (!first) return
  const organizationId = first.id
  const rows = await inOrganization(db, organizationId, (transaction) =>
    transaction.signingKey.findMany({ where: { organizationId }, select: { id: true, seed: true } }),
  )
  for (const { id, seed } of rows) openSecret(secretKeys(), { kind: 'signing_key', organizationId, id }, seed)
}
