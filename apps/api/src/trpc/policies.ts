import { roles } from '../domain/actor.ts'
import { appRouter } from './router.ts'
import type { ProcedurePolicy } from './trpc.ts'

interface ProcedureFacts {
  path: string
  type: 'query' | 'mutation' | 'subscription'
  policy: ProcedurePolicy
}

/** Every procedure with its policy. Throws when one has none: an API with an open door does not start. */
export function procedurePolicies(router: { _def: { procedures: object } } = appRouter): ProcedureFacts[] {
  return Object.entries(router._def.procedures).map(([path, procedure]) => {
    const { meta, type } = (procedure as { _def: { meta?: ProcedurePolicy; type: ProcedureFacts['type'] } })
      ._def
    if (!meta || !roles.includes(meta.minimumRole))
      throw new Error(`The procedure ${path} has no policy; add .meta({ minimumRole: … }).`)
    return { path, type, policy: meta }
  })
}
