import type { z } from 'zod'
import { judge } from '../access/authorise.ts'
import { findPlaces, objectKinds } from '../access/find-place.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { type Grant, may, newMemberActor } from '../rules/actor.ts'
import { type Permission, permissionNames, permissions, roleHas } from '../rules/permissions.ts'
import { organizationPlace, type Place } from '../rules/place.ts'
import { readGrants } from '../session/public.ts'
import { findMember, memberViewOf } from './rows.ts'
import {
  type ExplainableKind,
  explainableIds,
  explainablePlaces,
  type explainedView,
  type explainInput,
} from './schema.ts'
import { roleWords } from './scope-rows.ts'

type Explained = z.infer<typeof explainedView>
type NamedGrant = Explained['permissions'][number]['by'][number]

/**
 * Explains what a member may do to an object, or in the whole organization, and by which role: decided like the
 * member's own requests. The policy has checked the object before. Throws `not_found`, and `forbidden` for a place
 * whose members the actor may not see.
 */
export async function explainMember(context: ServiceContext, input: z.output<typeof explainInput>): Promise<Explained> {
  const { db, actor } = context
  const { organizationId } = actor
  const member = await findMember(context, input.userId)
  const asked = await askedPlace(context, input)
  if (!may(actor, 'member.read', asked.place))
    throw new AppError('forbidden', { public: 'Choose a scope whose members you can see.' })
  const grants = await readGrants(db, { organizationId, userId: input.userId })
  const organization = { id: organizationId, name: actor.organizationName }
  const judged = {
    ...newMemberActor({ userId: member.userId, ...member.user }, organization),
    grants,
  }
  // The actor sees all roles that apply in this place, because they see the place; other roles are left out.
  const named = new Map(memberViewOf(actor, member).grants.map((grant) => [keyOf(grant), grant]))
  const nameOf = ({ role, scope }: Grant) =>
    named.get(`${role} ${scope.collectionId ?? scope.siteId ?? scope.farmId}`) ?? []
  return {
    userId: member.userId,
    memberName: member.user.name,
    placeName: asked.name,
    permissions: permissionNames.map((permission) => {
      const judgement = judge(judged, permission, asked)
      const by = judgement.verdict === 'allowed' ? judgement.grants.flatMap(nameOf) : []
      const elsewhere = grants.filter(({ role }) => roleHas(role, permission)).flatMap(nameOf)
      return {
        permission,
        allows: permissions[permission].allows,
        allowed: judgement.verdict === 'allowed',
        by: by.map(({ id, role, scope }) => ({ id, role, scope })),
        because: judgement.verdict === 'allowed' ? wordsOf(by) : whatIsMissing(permission, elsewhere),
      }
    }),
  }
}

function keyOf({ role, scope }: NamedGrant): string {
  return `${role} ${scope.id}`
}

function wordsOf(grants: NamedGrant[]): string {
  const words = grants.map(({ role, scope }) => roleWords(role, scope)).join(', and as ')
  return `As ${words}.`
}

function whatIsMissing(permission: Permission, elsewhere: NamedGrant[]): string {
  if (elsewhere.length > 0) return `${wordsOf(elsewhere).slice(0, -1)}, which does not apply here.`
  const names = permissions[permission].roles.map((role) => role.replace('_', ' '))
  return `No role grants this here. It requires ${names.length > 1 ? `${names.slice(0, -1).join(', ')} or ` : ''}${names.at(-1)}.`
}

interface AskedPlace {
  kind: ExplainableKind | null
  place: Place
  name: string
}

async function askedPlace({ db, actor }: ServiceContext, input: z.output<typeof explainInput>): Promise<AskedPlace> {
  const { organizationId } = actor
  const field = explainableIds.find((name) => input[name])
  const id = field && input[field]
  if (!field || !id) return { kind: null, place: organizationPlace, name: 'the whole organization' }
  const kind = explainablePlaces[field]
  const place = (await findPlaces(db, kind, { organizationId, ids: [id] })).get(id)
  const [row] = await db.$queryRaw<{ name: string }[]>`select name from ${objectKinds[kind].table}
    where organization_id = ${organizationId}::uuid and id = ${id}::uuid`
  if (!place || !row) throw new AppError('not_found')
  return { kind, place, name: `the ${objectKinds[kind].noun} ${row.name}` }
}
