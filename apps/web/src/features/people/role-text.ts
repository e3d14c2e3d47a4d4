import type { RouterOutputs } from '../../lib/trpc'

type Grant = RouterOutputs['member']['get']['grants'][number]
export type Role = Grant['role']
export type Scope = Grant['scope']

/** The role's name for people. */
export function roleText(role: Role): string {
  return role.replace('_', ' ')
}

/** `the site Berlin`, as in sentences. */
export function scopeText({ kind, name }: Scope): string {
  return kind === 'organization' ? name : `the ${kind} ${name}`
}

/** The scope as the API takes it: at most one id. */
export function scopeInput({ kind, id }: Scope): { farmId?: string; siteId?: string; collectionId?: string } {
  if (kind === 'organization' || id === null) return {}
  return { [`${kind}Id`]: id }
}

/** Distinguishes scopes in a list of options. */
export function scopeKey({ kind, id }: Scope): string {
  return `${kind} ${id ?? ''}`
}
