import type { z } from 'zod'
import type { ServiceContext } from '../context/service-context.ts'
import { may } from '../rules/actor.ts'
import { organizationPlace } from '../rules/place.ts'
import { newestChange } from './boot-feed.ts'
import type { newestChangeView } from './schema.ts'

/** The number grows with every boot of the organization, so only those learn it who may see all of them. */
export async function getNewestChange({ db, actor }: ServiceContext): Promise<z.infer<typeof newestChangeView>> {
  if (!may(actor, 'boot.read', organizationPlace)) return { id: null }
  return { id: String(await newestChange(db, actor.organizationId)) }
}
