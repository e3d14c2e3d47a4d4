import type { ServiceContext } from '../context/service-context.ts'
import { readStormBoots, readStormDevices, readUnregistered } from './read-storm-rows.ts'
import { type Storm, type StormInput, stormDevicesMax, stormStates } from './schema.ts'
import { stormCellsOf } from './storm-cells.ts'
import { readStormEdges, readStormKinds } from './storm-figures.ts'
import { readStormScope } from './storm-scope.ts'

/**
 * Reads every device of a scope with its boot in the time, and machines that nobody has registered by their boots, in
 * columns: pages then follow the changes of boots. Throws `not_found` for a part of the organization that the actor
 * does not see.
 */
export async function getStorm(context: ServiceContext, input: StormInput): Promise<Storm> {
  const now = context.clock()
  const scope = await readStormScope(context, input, now)
  const { since } = scope
  const registered = await readStormDevices(context, scope, now)
  const left = stormDevicesMax - registered.devices.length
  const unregistered = await readUnregistered(context, scope, left)
  const boots = await readStormBoots(context, [...registered.devices, ...unregistered])
  const machines = unregistered.filter(({ id }) => boots.has(id))
  const devices = [...registered.devices, ...machines]
  const { kinds, kindIndexOf } = await readStormKinds(context, [...boots.values()])
  const edges = await readStormEdges(context, [...boots.values()], now)
  return {
    farm: scope.farm,
    site: scope.site,
    collection: scope.collection,
    run: scope.run,
    at: now.toISOString(),
    since: since.toISOString(),
    deviceCount: registered.deviceCount + machines.length,
    states: [...stormStates],
    ...stormCellsOf({ devices, boots, kindIndexOf, since }),
    kinds,
    edges,
  }
}
