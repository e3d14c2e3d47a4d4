/** The options of `npm run soak`. */
export interface SoakOptions {
  minutes: number
  kills: number
  /** The same seed kills the same programs in the same order at the same times. */
  seed: number
  /** Keeps the table in docs/results. */
  write: boolean
}

export const soakDefaults: SoakOptions = { minutes: 20, kills: 100, seed: 20261121, write: false }
const minutesMax = 120
/** A third of them hit PostgreSQL, whose supervisor gives up after ten deaths in a minute. */
export const killsPerMinuteMax = 15
const seedMax = 2 ** 31 - 1

/** @throws a sentence that names the option and its valid values */
export function parseSoakOptions(args: string[]): SoakOptions {
  const options = { ...soakDefaults }
  const rest = [...args]
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === '--write') options.write = true
    else if (name === '--minutes') options.minutes = wholeNumber(name, rest.shift(), minutesMax)
    else if (name === '--kills') options.kills = wholeNumber(name, rest.shift(), minutesMax * killsPerMinuteMax)
    else if (name === '--seed') options.seed = wholeNumber(name, rest.shift(), seedMax)
    else
      throw new Error(`${name} is not an option of the soak; there are --minutes N, --kills N, --seed N and --write.`)
  }
  const killsMax = options.minutes * killsPerMinuteMax
  if (options.kills > killsMax)
    throw new Error(
      `${options.kills} kills do not fit in ${options.minutes} min: give --kills ${killsMax} at most, or more --minutes.`,
    )
  return options
}

function wholeNumber(name: string, text: string | undefined, max: number): number {
  const value = /^\d+$/.test(text ?? '') ? Number(text) : 0
  if (value < 1 || value > max) throw new Error(`${name} needs a whole number from 1 to ${max}.`)
  return value
}
