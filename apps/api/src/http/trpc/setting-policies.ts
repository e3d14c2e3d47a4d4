import type { Permission } from '../../rules/permissions.ts'
import type { PlaceKind } from '../../rules/place.ts'
import type { MemberPolicy } from './policy.ts'

interface Setting {
  /** The object that has the setting, and the input's field that names it. */
  of: { kind: PlaceKind; id: string }
  /** Below /api/v1. */
  path: string
  /** Who may read it. */
  permission: Permission
  /** Who may change it. */
  changedBy: Permission
  summaries: { get: string; set: string }
}

/** The policies of an object's setting, which GET reads and PUT replaces. */
export function settingPolicies({ of: place, path, permission, changedBy, summaries }: Setting): {
  get: MemberPolicy
  set: MemberPolicy
} {
  return {
    get: { permission, place, rest: { method: 'GET', path, summary: summaries.get } },
    set: { permission: changedBy, place, rest: { method: 'PUT', path, summary: summaries.set } },
  }
}
