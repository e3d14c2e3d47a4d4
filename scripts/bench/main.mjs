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
  idle: {
    what: 'processor time of API and PostgreSQL for 1,000 edges where nothing happens, or --edges N, beside an earlier release; 4 minutes each',
    load: async () => (await import('./idle.mjs')).benchIdle,
  },
  pages: {
    what: 'largest contentful paint of sign-in, overview, boots and a boot, with a browser at a quarter of its speed; 2 minutes a round',
    load: async () => (await import('./pages.mjs')).benchPages,
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
                (fairness, reports, state, vdisk) several between commas
  --write       writes the table into docs/results and the raw figures into bench-results
  --quick       (stream) measures each case once, and for a shorter time; (idle) with 50 edges
  --edges N     (idle) 50 to 10,000 edges (default 1,000)
  --before FILE (stream) measures the bootfarm-edge in FILE, an earlier build, in place of the NBD servers
                (idle, reports) measures the checkout in FILE, a directory, of an earlier release, in turns with this one

Example: npm run bench -- stream --only '16 devices' --rounds 9 --before /tmp/bootfarm-edge
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
  if (name !== 'stream' && name !== 'idle' && parsed.quick)
    throw new UserError('only the benchmarks stream and idle have --quick.')
  if (name !== 'stream' && name !== 'idle' && name !== 'reports' && parsed.before)
    throw new UserError('only the benchmarks stream, idle and reports have --before.')
  if (name !== 'stream' && parsed.content !== 'pattern') throw new UserError('only the benchmark stream has --content.')
  if (name !== 'idle' && parsed.edges) throw new UserError('only the benchmark idle has --edges.')
  if (parsed.edges && parsed.quick) throw new UserError('--quick says how many edges there are: leave out --edges.')
  const run = await bench.load()
  await run(parsed)
}

/**
 * @returns {{ rounds: number, write: boolean, only: string, quick: boolean, before?: string, edges?: number,
 *   content: 'pattern' | 'debian' }}
 */
function parse(options) {
  const parsed = {
    rounds: 3,
    write: false,
    only: '',
    quick: false,
    before: undefined,
    edges: undefined,
    content: 'pattern',
  }
  while (options.length > 0) {
    const option = options.shift()
    if (option === '--write') parsed.write = true
    else if (option === '--quick') parsed.quick = true
    else if (option === '--rounds' && /^[1-9]$/.test(options[0] ?? '')) parsed.rounds = Number(options.shift())
    else if (option === '--only' && options.length > 0) parsed.only = options.shift()
    else if (option === '--before' && existsSync(options[0] ?? '')) parsed.before = path.resolve(options.shift())
    else if (option === '--content' && ['pattern', 'debian'].includes(options[0])) parsed.content = options.shift()
    else if (option === '--edges') parsed.edges = edgeCount(options.shift())
    else if (option === '--before')
      throw new UserError('--before needs an earlier build of bootfarm-edge, or a checkout of an earlier release.')
    else
      throw new UserError(
        `a benchmark has no option ${option}; there are --rounds 1 to 9, --only TEXT, --quick, --edges N, --before FILE, --content pattern or debian, and --write.`,
      )
  }
  return parsed
}

function edgeCount(text) {
  const count = /^[1-9]\d*$/.test(text ?? '') ? Number(text) : 0
  if (count < 50 || count > 10_000) throw new UserError('--edges needs a whole number from 50 to 10000.')
  return count
}
