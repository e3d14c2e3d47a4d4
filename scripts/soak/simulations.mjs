import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { UserError } from '../lib/fail.mjs'
import { edgeSource } from '../lib/paths.mjs'
import { zigJobs } from '../lib/toolchain.mjs'

const shared = { '--seed': '1', '--jobs': '1', '--progress': '60' }

/** The runs of `npm run soak -- NAME`: a step of the build, and its options with their defaults. */
const simulations = {
  store: { step: 'store-sim', defaults: { '--operations': '1000000000', ...shared } },
  stream: { step: 'stream-sim', defaults: { '--packets': '1000000000', ...shared } },
}

export const simulationNames = Object.keys(simulations)

/**
 * Runs the layer `store-sim` or `stream-sim` for longer: `npm run soak -- store`, `npm run soak -- stream`. Each
 * line of progress names the options that continue an interrupted run.
 * @param {string} zig
 * @param {string} name one of `simulationNames`
 * @param {string[]} args pairs of option and whole number
 * @returns {Promise<boolean>} false where a fault was found
 */
export async function soakSimulation(zig, name, args) {
  const { step, defaults } = simulations[name]
  const options = { ...defaults }
  for (let index = 0; index < args.length; index += 2) {
    const [option, value] = [args[index], args[index + 1]]
    if (!(option in options))
      throw new UserError(`${option} is not an option of this soak; there are ${Object.keys(options).join(', ')}.`)
    options[option] = wholeNumber(option, value)
  }
  const child = spawn(zig, ['build', zigJobs, step, '-Dtest-optimize=safe', '--', ...Object.entries(options).flat()], {
    cwd: edgeSource,
    stdio: 'inherit',
  })
  const [code] = await once(child, 'exit')
  return code === 0
}

/** Digits, or a power of ten as in 1e9. */
function wholeNumber(option, value) {
  const power = /^([1-9])e(\d{1,2})$/.exec(value ?? '')
  const digits = power ? power[1] + '0'.repeat(Number(power[2])) : value
  if (!/^\d{1,18}$/.test(digits ?? '')) throw new UserError(`${option} is followed by a whole number.`)
  return digits
}
