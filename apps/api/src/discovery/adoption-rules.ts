import { createHash } from 'node:crypto'
import type { Prisma } from '@bootfarm/db'
import type { z } from 'zod'
import { type DbOrTransaction, ownRow, type ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { recordChange } from '../events/record-change.ts'
import { canonicalJson } from '../rules/canonical-json.ts'
import { type AdoptionRule, type Architecture, adoptionRulesMax } from './adoption-rule.ts'
import { lockSite, type SitePlace } from './rows.ts'
import type { RulesView, setRulesInput } from './schema.ts'

const ruleSelect = {
  macPrefix: true,
  vendorClassPrefix: true,
  vendorClassContains: true,
  architecture: true,
  relayNetwork: true,
  namePattern: true,
  collectionId: true,
  templateDeviceId: true,
} satisfies Prisma.AdoptionRuleSelect
type RuleRow = Prisma.AdoptionRuleGetPayload<{ select: typeof ruleSelect }>

/** A site's rules in their order. Throws `not_found`. */
export async function getRules({ db, actor }: ServiceContext, siteId: string): Promise<RulesView> {
  const place = { organizationId: actor.organizationId, siteId }
  const site = await db.site.findUnique({ where: ownRow(place, siteId), select: { id: true } })
  if (!site) throw new AppError('not_found')
  return viewOf(await readRules(db, place))
}

/**
 * Replaces the site's rules; they apply to devices that are reported from now on. Throws `not_found` for a missing
 * site, collection or device; `conflict` if somebody changed them meanwhile.
 */
export async function setRules(
  context: ServiceContext,
  { siteId, rules, revision }: z.output<typeof setRulesInput>,
): Promise<RulesView> {
  const { db, actor } = context
  const place = { organizationId: actor.organizationId, siteId }
  return db.$transaction(async (transaction) => {
    await lockSite(transaction, place)
    const known = viewOf(await readRules(transaction, place))
    if (known.revision !== revision)
      throw new AppError('conflict', {
        public: 'Someone else edited these rules in the meantime. Load the latest version.',
        extra: { revision: known.revision },
      })
    await requireOfSite(transaction, place, rules)
    await transaction.adoptionRule.deleteMany({ where: place })
    await transaction.adoptionRule.createMany({
      data: rules.map((rule, position) => ({ ...place, position, ...rowOf(rule) })),
    })
    const { name } = await transaction.site.findUniqueOrThrow({
      where: ownRow(place, siteId),
      select: { name: true },
    })
    await recordChange(context, {
      kind: 'site',
      id: siteId,
      name,
      before: { adoptionRules: known.rules },
      after: { adoptionRules: rules },
    })
    return viewOf(rules)
  })
}

export async function readRules(db: DbOrTransaction, place: SitePlace): Promise<AdoptionRule[]> {
  const rows = await db.adoptionRule.findMany({
    where: place,
    orderBy: { position: 'asc' },
    take: adoptionRulesMax,
    select: ruleSelect,
  })
  return rows.map(ruleOf)
}

async function requireOfSite(db: DbOrTransaction, place: SitePlace, rules: AdoptionRule[]): Promise<void> {
  const collectionIds = rules.flatMap(({ action }) => (action.kind === 'adopt' ? action.collectionId : []))
  const deviceIds = rules.flatMap(({ action }) => (action.kind === 'copy' ? action.templateDeviceId : []))
  const collections = await db.collection.count({ where: { ...place, id: { in: collectionIds } } })
  const devices = await db.device.count({ where: { ...place, id: { in: deviceIds } } })
  if (collections !== new Set(collectionIds).size || devices !== new Set(deviceIds).size)
    throw new AppError('not_found', { public: 'A rule names a collection or a device of another site.' })
}

function viewOf(rules: AdoptionRule[]): RulesView {
  return { rules, revision: createHash('sha256').update(canonicalJson(rules)).digest('hex') }
}

function ruleOf({ namePattern, collectionId, templateDeviceId, ...row }: RuleRow): AdoptionRule {
  // Only `setRules` writes it, from input that zod validated.
  const conditions = { ...row, architecture: row.architecture as Architecture | null }
  if (namePattern !== null && templateDeviceId !== null)
    return { conditions, action: { kind: 'copy', namePattern, templateDeviceId } }
  if (namePattern !== null && collectionId !== null)
    return { conditions, action: { kind: 'adopt', namePattern, collectionId } }
  return { conditions, action: { kind: 'ignore' } }
}

function rowOf({ conditions, action }: AdoptionRule): RuleRow {
  const none = { namePattern: null, collectionId: null, templateDeviceId: null }
  if (action.kind === 'ignore') return { ...conditions, ...none }
  const { kind: _kind, ...adoption } = action
  return { ...conditions, ...none, ...adoption }
}
