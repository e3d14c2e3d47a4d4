/** The options of `npm run soak -- update`. */
export interface UpdateSoakOptions {
  /** Updates and roll-backs together. */
  updates: number
  /** Simulated devices that boot and read. */
  devices: number
  /** Keeps the table in docs/results. */
  write: boolean
}

export const updateSoakDefaults: UpdateSoakOptions = { updates: 200, devices: 500, write: false }
const updatesMax = 1000
/** Of the edge's table of boots, and of `bootfarm-sim`. */
const devicesMax = 1000

/** @throws a sentence that names the option and its valid values */
export function parseUpdateSoakOptions(args: string[]): UpdateSoakOptions {
  const options = { ...updateSoakDefaults }
  const rest = [...args]
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === '--write') options.write = true
    else if (name === '--updates') options.updates = wholeNumber(name, rest.shift(), updatesMax)
    else if (name === '--devices') options.devices = wholeNumber(name, rest.shift(), devicesMax)
    else throw new Error(`${name} is not an option of this soak; there are --updates N, --devices N and --write.`)
  }
  return options
}

function wholeNumber(name: string, text: string | undefined, max: number): number {
  const value = /^\d+$/.test(text ?? '') ? Number(text) : 0
  if (value < 1 || value > max) throw new Error(`${name} needs a whole number from 1 to ${max}.`)
  return value
}
