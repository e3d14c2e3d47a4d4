/** The options of `npm run soak -- update`. */
export interface UpdateSoakOptions {
  /** Updates and roll-backs together. */
  updates: number
  /** Simulated devices: a tenth of them write, the others boot and read. */
  devices: number
  /** Virtual machines that read and write. */
  machines: number
  /** Minutes of the same load before the first update. */
  quietMinutes: number
  /** Seconds that a new program must serve (`bootfarm-edge serve --probation`). */
  probation: number
  /** Keeps the table in docs/results. */
  write: boolean
}

export const updateSoakDefaults: UpdateSoakOptions = {
  updates: 200,
  devices: 500,
  machines: 2,
  quietMinutes: 4,
  probation: 2,
  write: false,
}

/** The least and the greatest value of each option with a number. */
const numbers = {
  '--updates': { key: 'updates', least: 1, most: 1000 },
  // Of the edge's table of boots, and of the MAC addresses of those who write.
  '--devices': { key: 'devices', least: 20, most: 1000 },
  '--machines': { key: 'machines', least: 0, most: 2 },
  '--quiet-minutes': { key: 'quietMinutes', least: 1, most: 60 },
  '--probation': { key: 'probation', least: 1, most: 60 },
} as const

/** @throws a sentence that names the option and its valid values */
export function parseUpdateSoakOptions(args: string[]): UpdateSoakOptions {
  const options = { ...updateSoakDefaults }
  const rest = [...args]
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === '--write') options.write = true
    else if (isNumberOption(name)) {
      const { key, least, most } = numbers[name]
      options[key] = wholeNumber(name, rest.shift(), { least, most })
    } else
      throw new Error(
        `${name} is not an option of this soak; there are ${Object.keys(numbers).join(' N, ')} N and --write.`,
      )
  }
  return options
}

/** How many devices of each class write. */
export const writersPerClass = ({ devices }: UpdateSoakOptions) => Math.floor(devices / 20)

function isNumberOption(name: string): name is keyof typeof numbers {
  return name in numbers
}

function wholeNumber(name: string, text: string | undefined, { least, most }: { least: number; most: number }): number {
  const value = /^\d+$/.test(text ?? '') ? Number(text) : -1
  if (value < least || value > most) throw new Error(`${name} needs a whole number from ${least} to ${most}.`)
  return value
}
