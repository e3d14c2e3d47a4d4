import type { ServiceContext } from '../context/service-context.ts'
import { readStormBoots, readStormDevices } from './read-storm-rows.ts'
import { type Storm, type StormInput, stormStates } from './schema.ts'
import { stormCellsOf } from './storm-cells.ts'
import { readStormEdges, readStormKinds } from './storm-figures.ts'
import { readStormScope } from './storm-scope.ts'

/**
 * Reads every device of a scope with its boot in the time, in columns: pages then follow the changes of boots. Throws
 * `not_found` for a part of the organization that the actor does not see.
 */
export async function getStorm(context: ServiceContext, input: StormInput): Promise<Storm> {
  const now = context.clock()
  const scope = await readStormScope(context, input, now)
  const { since } = scope
  const { devices, deviceCount } = await readStormDevices(context, scope, now)
  const boots = await readStormBoots(context, devices)
  const { kinds, kindIndexOf } = await readStormKinds(context, [...boots.values()])
  const edges = await readStormEdges(context, [...boots.values()], now)
  return {
    farm: scope.farm,
    site: scope.site,
    collection: scope.collection,
    run: scope.run,
    at: now.toISOString(),
    since: since.toISOString(),
    deviceCount,
    states: [...stormStates],
    ...stormCellsOf({ devices, boots, kindIndexOf, since }),
    kinds,
    edges,
  }
}
