import { UserError } from '../../lib/fail.mjs'
import { simProgram } from '../../lib/paths.mjs'
import { WatchedProcess } from '../watched-process.mjs'
import { residentBytes } from './servers.mjs'

const requestsPerSecond = 20_000
/** Of one boot and of one flood: many times what they take. */
const limitMs = 60_000
const floodSeconds = 6
/** Let it get going before the boot, and go on behind it. */
const headStartMs = 1_000

/**
 * Boots a simulated device beside nothing and beside a flood of read requests under false addresses, in turns.
 * @param {import('./cable.mjs').Cable} cable
 * @param {import('./servers.mjs').Server} edge
 */
export async function measureFlood(cable, edge, rounds) {
  // The first boot opens what later ones find open.
  await boot(cable, edge, 0)
  const residentBefore = residentBytes(edge.process.pid)
  const quiet = []
  const flooded = []
  const floods = []
  for (let round = 0; round < rounds; round++) {
    quiet.push(await boot(cable, edge, 2 * round + 1))
    const flood = startFlood(cable, edge)
    try {
      await new Promise((resolve) => setTimeout(resolve, headStartMs))
      flooded.push(await boot(cable, edge, 2 * round + 2))
      const { match } = await flood.waitFor(/^\{.*\}$/m, limitMs)
      floods.push(JSON.parse(match[0]))
    } finally {
      await flood.stop()
    }
  }
  const residentAfter = residentBytes(edge.process.pid)
  return { requestsPerSecond, floodSeconds, quiet, flooded, floods, residentBefore, residentAfter }
}

function startFlood(cable, edge) {
  return new WatchedProcess(
    cable.onClient(simProgram, [
      'tftp-flood',
      '--server',
      edge.ip,
      '--file',
      'undionly.kpxe',
      '--sources',
      cable.falseAddresses,
      '--rate',
      String(requestsPerSecond),
      '--seconds',
      String(floodSeconds),
    ]),
  )
}

/** ms from power-on to ready, and of the boot program within. */
async function boot(cable, edge, number) {
  const device = new WatchedProcess(
    cable.onClient(simProgram, [
      'boot',
      '--server',
      edge.ip,
      '--interface',
      cable.clientInterface,
      '--tftp-port',
      '69',
      '--json',
      '--speed',
      '0',
      '--breather-ms',
      '0',
      '--first-mac',
      `02:bf:00:00:01:${hex(number)}`,
    ]),
  )
  try {
    const { match } = await device.waitFor(/^\{.*"outcome":.*\}$/m, limitMs)
    const result = JSON.parse(match[0])
    if (result.outcome !== 'ready') throw new UserError(`the device did not boot: ${match[0]}`)
    return { totalMs: result.totalUs / 1000, programMs: result.nbpUs / 1000 }
  } finally {
    await device.stop()
  }
}

const hex = (number) => number.toString(16).padStart(2, '0')
