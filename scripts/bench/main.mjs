import { UserError } from '../lib/fail.mjs'

/** Each measures beside another implementation in the same run, and may write its table into docs/results. */
const benches = {
  api: {
    what: '50 requests/s of lists, filters and pages over 1,000,000 boots while 200 boots/s come in; about 7 minutes',
    load: async () => (await import('./api.mjs')).benchApi,
  },
  boot: {
    what: 'power-on to ready of virtual machines, beside dnsmasq, an HTTP server and nbdkit; about 6 minutes',
    load: async () => (await import('./boot.mjs')).benchBoot,
  },
  'desired-state': {
    what: 'from a change in the API until an edge acts on it, with 200 long polls and two API processes; about 2 minutes',
    load: async () => (await import('./desired-state.mjs')).benchDesiredState,
  },
  stream: {
    what: 'random reads, losses, replayed boots and 500 devices over the stream, beside nbdkit and qemu-nbd; about 12 minutes',
    load: async () => (await import('./stream.mjs')).benchStream,
  },
  tftp: {
    what: 'TFTP throughput and processor time beside atftpd and dnsmasq, and a boot in a flood; about 3 minutes',
    load: async () => (await import('./tftp.mjs')).benchTftp,
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
      process.stdout.write(`npm run bench -- ${known.padEnd(13)} ${what}\n`)
    process.stdout.write(
      '--rounds N measures N times (3); --only TEXT takes those named so; --write keeps the table in docs/results;\n' +
        '--quick (of stream) measures once, and for a shorter time;\n' +
        '--database DIR (of api) keeps the seeded database in DIR, and takes it as it is the next time\n',
    )
    return
  }
  const bench = benches[name]
  if (!bench) throw new UserError(`there is no benchmark ${name}; there are: ${Object.keys(benches).join(', ')}.`)
  const run = await bench.load()
  await run(parse(options))
}

/** @returns {{ rounds: number, write: boolean, only: string, database: string, quick: boolean }} */
function parse(options) {
  const parsed = { rounds: 3, write: false, only: '', database: '', quick: false }
  while (options.length > 0) {
    const option = options.shift()
    if (option === '--write') parsed.write = true
    else if (option === '--quick') parsed.quick = true
    else if (option === '--rounds' && /^[1-9]$/.test(options[0] ?? '')) parsed.rounds = Number(options.shift())
    else if (option === '--only' && options.length > 0) parsed.only = options.shift()
    else if (option === '--database' && options.length > 0) parsed.database = options.shift()
    else
      throw new UserError(
        `${option} is not an option of a benchmark; there are --rounds 1 to 9, --only TEXT, --quick, --database DIR and --write.`,
      )
  }
  return parsed
}
