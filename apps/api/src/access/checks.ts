import type { Actor } from '../rules/actor.ts'
import { authorise } from './authorise.ts'

/**
 * The application's own wall in front of tenants' rows, the first of two: row-level security is the other. It is a
 * separate part so that tests can remove it and see that the other one holds alone; nothing else does.
 */
export interface Checks {
  authorise: typeof authorise
  /** Whom a session or a key is taken for. */
  actorOf(actor: Actor): Actor
}

export const applicationChecks: Checks = { authorise, actorOf: (actor) => actor }
