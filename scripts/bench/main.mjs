import { UserError } from '../lib/fail.mjs'

/** Each one compares with another implementation in the same run, and may write its table into docs/results. */
const benches = {
  boot: {
    what: 'power-on to ready of virtual machines, beside dnsmasq, an HTTP server and nbdkit; about 6 minutes',
    load: async () => (await import('./boot.mjs')).benchBoot,
  },
  stream: {
    what: 'random reads, losses, replayed boots and 500 devices over the stream, beside nbdkit and qemu-nbd; about 12 minutes',
    load: async () => (await import('./stream.mjs')).benchStream,
  },
  vdisk: {
    what: 'merges, random reads, imports and write caches of the vDisk store, beside raw files and qcow2; about 5 minutes a round',
    load: async () => (await import('./vdisk.mjs')).benchVdisk,
  },
}

/** @param {string[]} args a benchmark's name and its options; none lists them */
export async function runBench([name, ...options]) {
  if (name === undefined) {
    for (const [known, { what }] of Object.entries(benches))
      process.stdout.write(`npm run bench -- ${known.padEnd(6)} ${what}\n`)
    process.stdout.write(
      '--rounds N measures N times (3); --only TEXT takes those named so; --write keeps the table in docs/results and the raw figures in bench-results;\n' +
        '--quick (of stream) measures once, and for a shorter time\n',
    )
    return
  }
  const bench = benches[name]
  if (!bench) throw new UserError(`there is no benchmark ${name}; there are: ${Object.keys(benches).join(', ')}.`)
  const run = await bench.load()
  await run(parse(options))
}

/** @returns {{ rounds: number, write: boolean, only: string, quick: boolean }} */
function parse(options) {
  const parsed = { rounds: 3, write: false, only: '', quick: false }
  while (options.length > 0) {
    const option = options.shift()
    if (option === '--write') parsed.write = true
    else if (option === '--quick') parsed.quick = true
    else if (option === '--rounds' && /^[1-9]$/.test(options[0] ?? '')) parsed.rounds = Number(options.shift())
    else if (option === '--only' && options.length > 0) parsed.only = options.shift()
    else
      throw new UserError(
        `${option} is not an option of a benchmark; there are --rounds 1 to 9, --only TEXT, --quick and --write.`,
      )
  }
  return parsed
}
