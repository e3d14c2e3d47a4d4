import { existsSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'

/** Each one compares with another implementation in the same run, and may write its table into docs/results. */
const benches = {
  attack: {
    what: 'how long 64 running devices wait while somebody sends 10,000 hostile requests, and without; about a minute a round',
    load: async () => (await import('./attack.mjs')).benchAttack,
  },
  boot: {
    what: 'power-on to ready of virtual machines, beside dnsmasq, an HTTP server and nbdkit; about 6 minutes',
    load: async () => (await import('./boot.mjs')).benchBoot,
  },
  distribution: {
    what: 'a new version for ten edges of a site over a line of 100 Mb/s; 2 minutes a round',
    load: async () => (await import('./distribution.mjs')).benchDistribution,
  },
  fairness: {
    what: 'what one organization waits for while another one attacks the API, and without; 5 minutes a round',
    load: async () => (await import('./fairness.mjs')).benchFairness,
  },
  field: {
    what: 'the experiments that others published about Citrix Provisioning, repeated; or any --matrix of settings of a boot; 11 minutes',
    load: async () => (await import('./field.mjs')).benchField,
  },
  idle: {
    what: 'processor time of API and PostgreSQL for 1,000 edges where nothing happens, or --edges N, beside an earlier release; 4 minutes each',
    load: async () => (await import('./idle.mjs')).benchIdle,
  },
  pages: {
    what: 'largest contentful paint of sign-in, overview, boots and a boot, with a browser at a quarter of its speed; 2 minutes a round',
    load: async () => (await import('./pages.mjs')).benchPages,
  },
  prediction: {
    what: 'predicts 24 storms of up to 200 devices, each before it is measured with a real edge; about 12 minutes',
    load: async () => (await import('./prediction.mjs')).benchPrediction,
  },
  regression: {
    what: 'causes of slower boots that are found in seeded sets, and false alarms in quiet ones; 4 minutes, the same on every machine',
    load: async () => (await import('./regression.mjs')).benchRegression,
  },
  reports: {
    what: 'boots a minute that the edges of one organization report while all of its devices boot, ready or failed; a minute each',
    load: async () => (await import('./reports.mjs')).benchReports,
  },
  state: {
    what: 'a change of one device until its edge has it, a revert at 10,000 sites, and queries of a large organization and of its events; 6 minutes a round',
    load: async () => (await import('./state.mjs')).benchState,
  },
  stream: {
    what: 'random reads, losses, replayed boots and 500 devices over the stream, beside nbdkit and qemu-nbd; about 12 minutes',
    load: async () => (await import('./stream.mjs')).benchStream,
  },
  vdisk: {
    what: 'merges, random reads, imports and write caches of the vDisk store, beside raw files and qcow2; about 5 minutes a round',
    load: async () => (await import('./vdisk.mjs')).benchVdisk,
  },
  watched: {
    what: 'boots of a Debian that tells which programs read its disk, beside ones that do not; ten pairs a round, 5 minutes',
    load: async () => (await import('./watched.mjs')).benchWatched,
  },
}

const help = `npm run bench -- NAME [OPTION...]
Measures one part of Bootfarm beside other implementations, in turns, and prints medians and ratios.

${Object.entries(benches)
  .map(([name, { what }]) => `  ${name.padEnd(14)}${what}`)
  .join('\n')}

  --rounds N    measures each case N times, 1 to 9 (default 3)
  --only TEXT   measures the case of this name, or else all cases whose names contain TEXT;
                (fairness, field, prediction, reports, state, vdisk) several between commas
  --write       writes the table into docs/results and the raw figures into bench-results
  --quick       (stream) measures each case once, and for a shorter time; (idle) with 50 edges
  --edges N     (idle) 50 to 10,000 edges (default 1,000)
  --matrix F=V,V...  (field) measures boots with each value of a factor, such as readSize=32k,unlimited; may be repeated:
                then with each combination of values (docs/reference/field-experiments.md)
  --repeat N    (field) measures each cell of a matrix N times, 2 to 50 (default 5)
  --seed N      (field) draws the random order of the cells, 0 to 999999 (default 1)
  --before FILE (stream) measures the bootfarm-edge in FILE, an earlier build, in place of the NBD servers
                (idle, reports) measures the checkout in FILE, a directory, of an earlier release, in turns with this one

Examples: npm run bench -- stream --only '16 devices' --rounds 9 --before /tmp/bootfarm-edge
          npm run bench -- field --matrix readSize=4k,8k,44k,unlimited --matrix mtu=1500,9000 --repeat 5 --seed 1
`

/** @param {string[]} args a benchmark's name and its options; none prints the help */
export async function runBench([name, ...options]) {
  if (name === undefined || name === '--help' || options.includes('--help')) {
    process.stdout.write(help)
    return
  }
  const bench = benches[name]
  if (!bench) throw new UserError(`there is no benchmark ${name}; there are: ${Object.keys(benches).join(', ')}.`)
  const parsed = parse(options)
  refuseOthers(name, parsed)
  if (parsed.edges && parsed.quick) throw new UserError('--quick says how many edges there are: leave out --edges.')
  if (parsed.repeat && parsed.matrix.length === 0)
    throw new UserError('--repeat needs a --matrix; else there is --rounds.')
  if (parsed.only && parsed.matrix.length > 0) throw new UserError('--only names experiments, which a --matrix is not.')
  const run = await bench.load()
  await run(parsed)
}

/** Options that few benchmarks have: their names, and whether they were given. */
const ofFew = [
  { option: '--quick', names: ['stream', 'idle'], isGiven: ({ quick }) => quick },
  { option: '--before', names: ['stream', 'idle', 'reports'], isGiven: ({ before }) => before !== undefined },
  { option: '--content', names: ['stream'], isGiven: ({ content }) => content !== 'pattern' },
  { option: '--edges', names: ['idle'], isGiven: ({ edges }) => edges !== undefined },
  { option: '--matrix', names: ['field'], isGiven: ({ matrix }) => matrix.length > 0 },
  { option: '--repeat', names: ['field'], isGiven: ({ repeat }) => repeat !== undefined },
  { option: '--seed', names: ['field'], isGiven: ({ seed }) => seed !== undefined },
]

function refuseOthers(name, parsed) {
  const found = ofFew.find(({ names, isGiven }) => isGiven(parsed) && !names.includes(name))
  if (!found) return
  const which = found.names.length === 1 ? 'benchmark' : 'benchmarks'
  const have = found.names.length === 1 ? 'has' : 'have'
  throw new UserError(`only the ${which} ${found.names.join(', ')} ${have} ${found.option}.`)
}

/**
 * @returns {{ rounds: number, write: boolean, only: string, quick: boolean, before?: string, edges?: number,
 *   content: 'pattern' | 'debian', matrix: string[], repeat?: number, seed?: number }}
 */
function parse(options) {
  const parsed = { rounds: 3, write: false, only: '', quick: false, content: 'pattern', matrix: [] }
  while (options.length > 0) {
    const option = options.shift()
    if (option === '--write') parsed.write = true
    else if (option === '--quick') parsed.quick = true
    else if (option === '--rounds' && /^[1-9]$/.test(options[0] ?? '')) parsed.rounds = Number(options.shift())
    else if (option === '--only' && options.length > 0) parsed.only = options.shift()
    else if (option === '--before' && existsSync(options[0] ?? '')) parsed.before = path.resolve(options.shift())
    else if (option === '--content' && ['pattern', 'debian'].includes(options[0])) parsed.content = options.shift()
    else if (option === '--edges') parsed.edges = numberOf(option, options.shift(), [50, 10_000])
    else if (option === '--matrix' && options.length > 0) parsed.matrix.push(options.shift())
    else if (option === '--repeat') parsed.repeat = numberOf(option, options.shift(), [2, 50])
    else if (option === '--seed') parsed.seed = numberOf(option, options.shift(), [0, 999_999])
    else if (option === '--before')
      throw new UserError('--before needs an earlier build of bootfarm-edge, or a checkout of an earlier release.')
    else
      throw new UserError(
        `a benchmark has no option ${option}; there are --rounds 1 to 9, --only TEXT, --quick, --edges N, --before FILE, --content pattern or debian, --matrix FACTOR=VALUES, --repeat N, --seed N, and --write.`,
      )
  }
  return parsed
}

function numberOf(option, text, [least, most]) {
  const found = /^\d{1,6}$/.test(text ?? '') ? Number(text) : -1
  if (found < least || found > most) throw new UserError(`${option} needs a whole number from ${least} to ${most}.`)
  return found
}
