import { permissionNames } from '../../rules/permissions.ts'
import { isMemberPolicy, type ProcedurePolicy } from './policy.ts'
import { appRouter } from './router.ts'

interface ProcedureFacts {
  path: string
  type: 'query' | 'mutation' | 'subscription'
  policy: ProcedurePolicy
}

/** Every procedure with its policy. Throws when one has none: an API with an open door does not start. */
export function procedurePolicies(router: { _def: { procedures: object } } = appRouter): ProcedureFacts[] {
  return Object.entries(router._def.procedures).map(([path, procedure]) => {
    const { meta, type } = (procedure as { _def: { meta?: ProcedurePolicy; type: ProcedureFacts['type'] } })._def
    if (!meta || !isPolicy(meta))
      throw new Error(`The procedure ${path} has no policy; add .meta({ permission: …, place: … }).`)
    return { path, type, policy: meta }
  })
}

function isPolicy(meta: ProcedurePolicy): boolean {
  if (!isMemberPolicy(meta)) return ['anyone', 'person', 'platform'].includes(meta.who)
  return permissionNames.includes(meta.permission) && Boolean(meta.place)
}
