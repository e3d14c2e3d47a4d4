import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { UserError } from '../lib/fail.mjs'
import { say } from '../lib/progress.mjs'
import { capture } from '../lib/run.mjs'
import { mutationFolder } from './build.mjs'

/** Tests of a module, in the order in which they are asked: the last one has the simulations. */
const programs = ['core', 'store', 'agent', 'host', 'sim']

/**
 * Runs each mutant until a test finds it.
 * @returns {Promise<object[]>} the mutants with `verdict`: killed, survived or unreached; `by` and `how` when killed
 */
export async function runMutants({ sites, mutants, folder }, jobs) {
  const verdicts = new Map(mutants.map(({ id }) => [id, { verdict: 'unreached', runs: 0 }]))
  for (const program of programs) {
    const ids = [...verdicts].filter(([, { verdict }]) => verdict !== 'killed').map(([id]) => id)
    const parts = Array.from({ length: jobs }, (_, job) => ids.filter((_id, index) => index % jobs === job))
    const runs = parts.filter((part) => part.length > 0).map((part, job) => run({ sites, folder, program, job }, part))
    for (const line of (await Promise.all(runs)).flat()) {
      const [id, verdict, count, how, by] = line
      const known = verdicts.get(Number(id))
      known.runs += Number(count)
      if (verdict === 'killed') Object.assign(known, { verdict, how, by: `${program}: ${by}` })
      else if (verdict === 'survived') known.verdict = verdict
    }
    const killed = [...verdicts.values()].filter(({ verdict }) => verdict === 'killed').length
    say(`mutation: the tests of ${program} are over: ${killed} of ${mutants.length} mutants found`)
  }
  return mutants.map((mutant) => ({ ...mutant, ...verdicts.get(mutant.id) }))
}

async function run({ sites, folder, program, job }, ids) {
  const file = path.join(mutationFolder, `ids-${program}-${job}`)
  writeFileSync(file, `${[sites, ...ids].join('\n')}\n`)
  const cwd = path.join(folder, '../..')
  const { code, output } = await capture(path.join(folder, `mutation-${program}`), [file], { cwd })
  if (code !== 0) throw new UserError(`Without a mutant, tests of ${program} fail:\n${output.slice(-4000)}`)
  return output
    .trim()
    .split('\n')
    .map((line) => line.split('\t'))
}
