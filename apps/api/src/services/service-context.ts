import type { Db, DbTransaction } from '@bootfarm/db'
import type { Actor } from '../domain/actor.ts'
import type { Clock } from '../domain/clock.ts'

/** What a use case works with when nobody is signed in: edges, the demo. */
export interface SystemContext {
  db: Db
  clock: Clock
}

/** What a use case of a signed-in person works with. */
export interface ServiceContext extends SystemContext {
  actor: Actor
}

export type DbOrTransaction = Db | DbTransaction
