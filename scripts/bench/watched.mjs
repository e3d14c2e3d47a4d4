import os from 'node:os'
import { findKernel } from '../lib/machines/kernel.mjs'
import { say } from '../lib/progress.mjs'
import { machinePackages } from '../lib/system-packages.mjs'
import { bootOnce } from './boot/boot-once.mjs'
import { startEdge } from './boot/chains.mjs'
import { makeInitramfs, makeSystemDisk } from './boot/guests.mjs'
import { onSegment, requireMachines } from './boot/machines.mjs'
import { keepResult } from './results.mjs'
import { medianWithInterval } from './watched/interval.mjs'

const pairsPerRound = 10
const goal = 0.02

/**
 * Boots a Debian with systemd that tells which programs read its disk, and the same one that does not, in pairs, and
 * prints what being watched costs.
 * @param {{ rounds: number, write: boolean }} options
 */
export async function benchWatched({ rounds, write }) {
  const root = await requireMachines('watched', machinePackages)
  await onSegment(async ({ scratch, segment }) => {
    const initrd = makeInitramfs(scratch, findKernel('virtual'))
    const served = { disk: makeSystemDisk(scratch, root), vmlinuz: root.vmlinuz, initrd }
    const loads = [os.loadavg()[0]]
    const pairs = []
    for (let pair = 0; pair < rounds * pairsPerRound; pair++) {
      const one = {}
      // The first one has the colder machine.
      for (const name of pair % 2 === 0 ? ['watched', 'alone'] : ['alone', 'watched'])
        one[name] = await bootOnce(scratch, segment, {
          firmware: 'bios',
          memoryMib: 512,
          start: startEdge,
          served: { ...served, words: name === 'alone' ? ' bootfarm.trace=no' : '' },
        })
      pairs.push(one)
      say(`pair ${pair + 1}: ${(one.watched.readyMs / 1000).toFixed(2)} s, ${(one.alone.readyMs / 1000).toFixed(2)} s`)
    }
    loads.push(os.loadavg()[0])
    const machine = { model: os.cpus()[0]?.model ?? '', processors: os.cpus().length, loads }
    const result = { date: new Date().toISOString(), rounds, machine, pairs }
    process.stdout.write(`\n${asMarkdown(result)}\n`)
    if (write) keepResult('watched', result, asMarkdown(result))
  })
}

const measures = {
  'power-on to ready, s': ({ readyMs }) => readyMs / 1000,
  'kernel to ready, s': ({ phases }) => (phases.breather + phases.stage2) / 1000,
  'processor time of the machine, s': ({ machineSeconds }) => machineSeconds,
  'processor time of the edge, s': ({ serverSeconds }) => serverSeconds,
}

function asMarkdown({ date, rounds, machine, pairs }) {
  const rows = Object.entries(measures).map(([name, read]) => {
    const ratios = pairs.map(({ watched, alone }) => read(watched) / read(alone))
    const { median, low, high } = medianWithInterval(ratios)
    const middle = (which) => medianWithInterval(pairs.map((pair) => read(pair[which]))).median.toFixed(2)
    const percent = (ratio) => `${((ratio - 1) * 100).toFixed(1)} %`
    return `| ${name} | ${middle('watched')} | ${middle('alone')} | ${percent(median)} | ${percent(low)} to ${percent(high)} |`
  })
  return `# What being watched costs a boot

${pairs.length} pairs of boots of a Debian with systemd (QEMU \`-accel tcg\`, BIOS, one processor), in turns: one tells which
programs read its disk and in which units, the other one does not (\`bootfarm.trace=no\`). The difference is the
pseudo-median of the pairs' ratios with its 95 % interval (Wilcoxon's signed ranks). The edge keeps its own records of
both.

${date}, ${machine.processors} processors (${machine.model}), load ${machine.loads.map((load) => load.toFixed(1)).join(' and ')} before and after. Command:
\`npm run bench -- watched --rounds ${rounds}\`

| | watched | not watched | difference | interval |
|---|---|---|---|---|
${rows.join('\n')}

Goal: at most ${goal * 100} % of the boot's time, and of the edge's processor time.
`
}
