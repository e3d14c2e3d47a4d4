import { z } from 'zod'
import type { AskedPlaces } from '../../access/authorise.ts'
import { AppError, type AppErrorCode } from '../../errors/app-error.ts'
import type { Change } from '../../events/event-bus.ts'
import type { Fields } from '../../rules/audit-change.ts'
import type { Permission, Role } from '../../rules/permissions.ts'
import type { PlaceKind } from '../../rules/place.ts'

/** Policy as data: who may call a procedure. There is none without one. */
export type ProcedurePolicy = MemberPolicy | OutsidePolicy

/** For requests outside of any organization, or before there is one. */
export interface OutsidePolicy {
  /**
   * `anyone`: a link's token suffices. `person`: a signed-in person, for himself. `platform`: an administrator of the
   * installation.
   */
  who: 'anyone' | 'person' | 'platform'
  /** It is none: an API key is no person, and belongs to one organization. */
  rest: NoRestOperation
}

/** The permission that a member, or an API key, needs, and the place. */
export interface MemberPolicy {
  permission: Permission
  /**
   * `organization`: the permission must hold in the whole organization. `visible`: anywhere; the service shows and
   * accepts only what is visible (access/visible.ts). Otherwise the input's ids that name places: it must hold at each
   * of them.
   */
  place: 'organization' | 'visible' | PlaceOfInput | PlaceOfInput[]
  /**
   * Only for a person who signed in, or entered the password again, within the last minutes. `roles`: where the input
   * grants one of these.
   */
  confirmed?: true | { roles: Role[] }
  /** The operation below /api/v1: docs/reference/api.md. */
  rest?: RestOperation | NoRestOperation
}

export function isMemberPolicy(policy: ProcedurePolicy): policy is MemberPolicy {
  return 'permission' in policy
}

interface PlaceOfInput {
  kind: PlaceKind
  /** Name of the input's field: an id, or an array of ids. */
  id: string
  /** The field may be absent or null, and then has no effect. */
  optional?: true
}

const idsMax = 1_000

export function needsConfirmation({ confirmed }: MemberPolicy, input: unknown): boolean {
  if (confirmed === undefined || confirmed === true) return confirmed === true
  const role = typeof input === 'object' && input !== null ? Reflect.get(input, 'role') : undefined
  return confirmed.roles.some((one) => one === role)
}

/** The places that the policy and the input name, to be looked up. Throws `invalid` for an id that is none. */
export function placesOf(policy: MemberPolicy, input: unknown): AskedPlaces {
  if (typeof policy.place === 'string') return policy.place
  const fields = typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : {}
  return [policy.place].flat().flatMap((place) => {
    const value = fields[place.id]
    if (place.optional && (value === undefined || value === null)) return []
    return [{ kind: place.kind, ids: idsOf(place.id, value) }]
  })
}

function idsOf(name: string, value: unknown): string[] {
  const parsed = z
    .array(z.uuid())
    .min(1)
    .max(idsMax)
    .safeParse(Array.isArray(value) ? value : [value])
  if (parsed.success) return [...new Set(parsed.data)]
  const wanted = Array.isArray(value) ? `must be 1 to ${idsMax} ids (UUIDs)` : 'must be an id (a UUID)'
  throw new AppError('invalid', {
    public: `${name}: ${wanted}.`,
    fields: [{ in: 'input', field: name, message: wanted }],
  })
}

/** The audit entry of a change whose service records none itself: its input. */
export function changeAsAsked(places: AskedPlaces, input: unknown): Change {
  const first = typeof places === 'string' ? undefined : places[0]
  const fields = typeof input === 'object' && input !== null ? (input as Fields) : { input }
  return {
    kind: first?.kind ?? 'organization',
    id: first?.ids[0] ?? null,
    name: null,
    before: null,
    after: { asked: fields },
  }
}

/** A procedure as an operation of /api/v1: the same code, policy and schemas, by another door. */
export interface RestOperation {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /**
   * Path below /api/v1. Names in braces are the input's fields; the rest of the input is the query of GET and DELETE,
   * otherwise the body.
   */
  path: string
  /** One line, without a full stop. */
  summary: string
  description?: string
  /**
   * For an operation that creates an object: answers 201 with this Location, whose names are the output's fields; null
   * if nobody can read the object.
   */
  creates?: string | null
  /** The body may be as large as one of the dashboard's: a table of 10,000 devices. Others may have 1 MB. */
  isLarge?: true
  /** Answers 204: the output adds nothing to the status. */
  silent?: true
  /** Codes of problems that do not follow from its shape. */
  codes?: AppErrorCode[]
}

/** Why a procedure is none. */
interface NoRestOperation {
  excluded: string
}
