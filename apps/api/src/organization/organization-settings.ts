import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange, recordNothing } from '../events/record-change.ts'
import { quotaName } from '../rules/quotas.ts'
import { getOrganization, type SettingsContext } from './rows.ts'
import type { organizationView, renameOrganizationInput, signingKeysView, usageView } from './schema.ts'

/** Throws `conflict` if somebody else changed it meanwhile. */
export async function renameOrganization(
  context: SettingsContext,
  { name, revision }: z.output<typeof renameOrganizationInput>,
): Promise<z.infer<typeof organizationView>> {
  const { db, actor } = context
  const before = await getOrganization(context)
  // Nothing is lost, even with an outdated revision.
  if (name === before.name) {
    recordNothing(context)
    return before
  }
  const { count } = await db.organization.updateMany({
    where: { id: actor.organizationId, revision },
    data: { name, revision: { increment: 1 } },
  })
  if (count === 0)
    throw new AppError('conflict', {
      public: `Someone else changed this organization in the meantime (now revision ${before.revision}). Load the latest version.`,
      extra: { revision: before.revision },
    })
  await recordChange(context, {
    kind: 'organization',
    id: before.id,
    name,
    before: { name: before.name },
    after: { name },
  })
  return getOrganization(context)
}

/** Usage and limits of everything with a quota. */
export async function getUsage({ db }: ServiceContext): Promise<z.infer<typeof usageView>> {
  const rows = await db.$queryRaw<{ name: string; used: bigint; count_max: number | null }[]>`
    select name, used, count_max from own_usage()`
  return {
    quotas: rows.map(({ name, used, count_max: allowed }) => ({
      name: quotaName.parse(name),
      used: Number(used),
      allowed,
    })),
  }
}

interface SigningKeyRow {
  id: string
  public_key: string
  created_at: Date
  is_newest: boolean
  edge_count: bigint
}

/** The organization's signing keys, and how many edges have a desired state that is signed by each. */
export async function listSigningKeys({
  db,
  actor: { organizationId },
}: ServiceContext): Promise<z.infer<typeof signingKeysView>> {
  // An edge has applied a state when its heartbeat reports this state's pair, or a later one.
  const rows = await db.$queryRaw<SigningKeyRow[]>`
    select signing_key.id::text, public_key, signing_key.created_at,
      not exists (select from signing_key as next where next.organization_id = signing_key.organization_id
        and next.previous_key = signing_key.public_key) as is_newest,
      (select count(*) from desired_state join edge
          on edge.organization_id = desired_state.organization_id and edge.id = desired_state.edge_id
        where desired_state.organization_id = signing_key.organization_id and desired_state.signing_key_id = signing_key.id
          and edge.revoked_at is null
          and ((edge.heartbeat->'state'->>'incarnation')::bigint, (edge.heartbeat->'state'->>'counter')::bigint)
            >= (desired_state.incarnation, desired_state.counter)) as edge_count
    from signing_key where organization_id = ${organizationId}::uuid
    order by is_newest desc, signing_key.created_at desc, signing_key.id desc`
  return {
    keys: rows.map((row) => ({
      id: row.id,
      publicKey: row.public_key,
      isNewest: row.is_newest,
      createdAt: row.created_at.toISOString(),
      edgeCount: Number(row.edge_count),
    })),
    edgeCount: await db.edge.count({ where: { organizationId, revokedAt: null } }),
  }
}
