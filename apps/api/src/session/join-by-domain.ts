import { inOrganization } from '@bootfarm/db'
import type { PlatformContext } from '../context/service-context.ts'
import { toAppError } from '../errors/to-app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { ensureMember, requireNotSuspended } from '../organization/public.ts'
import { newMemberActor } from '../rules/actor.ts'
import type { DomainRule } from './oidc.ts'

interface Joining {
  userId: string
  name: string
  /** Verified: by the provider, or by a mailed link. */
  email: string
  address: string | null
}

/** Returns whether a new account may come from the provider: by a rule for its domain, or by an open invitation. */
export async function mayComeByOidc(
  { db, clock }: PlatformContext,
  { email, rules }: { email: string; rules: DomainRule[] },
): Promise<boolean> {
  if (ruleFor(email, rules)) return true
  const [row] = await db.$queryRaw<{ invited: boolean | null }[]>`
    select is_invited(${email.toLowerCase()}, ${clock()}) as invited`
  return row?.invited ?? false
}

/**
 * Makes the person a member if a rule for the e-mail's domain matches; a member keeps the existing roles, and a person
 * who was removed, or left, stays away. An organization without capacity, or suspended, accepts nobody.
 */
export async function joinByDomain(
  { db, clock }: PlatformContext,
  { userId, name, email, address }: Joining,
  rules: DomainRule[],
): Promise<void> {
  const rule = ruleFor(email, rules)
  if (!rule) return
  const [found] = await db.$queryRaw<{ id: string | null }[]>`
    select organization_of_slug(${rule.organizationSlug})::text as id`
  const organizationId = found?.id
  if (!organizationId) return
  const joined = inOrganization(db, organizationId, async (transaction) => {
    const person = { organizationId, userId }
    const known = await transaction.membership.findUnique({
      where: { organizationId_userId: person },
      select: { organization: { select: { name: true } } },
    })
    if (known) return
    const former = await transaction.formerMember.findUnique({ where: { organizationId_userId: person } })
    if (former) return
    await requireNotSuspended(transaction, organizationId)
    await ensureMember(transaction, { organizationId, userId, role: rule.role })
    const actor = newMemberActor({ userId, name, email }, { id: organizationId, name: rule.organizationSlug })
    const request = { action: 'account.joinByDomain', address, id: null, place, recordedCount: 0 }
    await recordChange(
      { db: transaction, clock, actor, request },
      {
        kind: 'member',
        id: userId,
        name: email,
        before: null,
        after: { role: rule.role, domain: rule.domain },
      },
    )
  })
  await joined.catch((error: unknown) => {
    // Signed in, but not a member of anything yet: the account's other uses stay available.
    const { code } = toAppError(error)
    if (code !== 'quota_exceeded' && code !== 'organization_suspended') throw error
  })
}

const place = { farmId: null, siteId: null, collectionId: null }

function ruleFor(email: string, rules: DomainRule[]): DomainRule | undefined {
  const domain = email.toLowerCase().split('@').at(-1)
  return rules.find((rule) => rule.domain === domain)
}
