// `npm run soak`: kills programs and cuts uplinks for 20 minutes; nothing acknowledged may be lost. `npm run soak --
// store`: a billion operations on a simulated vDisk store; `npm run soak -- stream`: as many packets of simulated
// streams. `npm run soak -- update`: updates and roll-backs of an edge under load.
import { fileURLToPath } from 'node:url'
import { runMain, UserError } from './lib/fail.mjs'
import { helps } from './lib/help.mjs'
import { inRoot } from './lib/paths.mjs'
import { say } from './lib/progress.mjs'
import { must } from './lib/run.mjs'
import { buildEdge, ensurePackages, ensureZig, requireSupportedSystem, withSupportedNode } from './lib/toolchain.mjs'
import { simulationNames, soakSimulation } from './soak/simulations.mjs'

const usage = `Usage: npm run soak -- [options]
       npm run soak -- store|stream [options]
       npm run soak -- update [--updates N] [--devices N] [--machines N] [--quiet-minutes N] [--probation S] [--write]

Kills programs and cuts uplinks for 20 minutes; nothing acknowledged may be lost. With store or stream it runs a
simulation of the vDisk store or of the stream for longer; each line of progress names the options that continue it.
With update an edge is updated and rolled back 200 times while 500 devices boot, read and write, and two virtual
machines read and write: no error, no lost report, and no stall that is 200 ms longer than in the minutes before the
first update. It needs root, and the packages that the tests of machines need.

  --minutes N   how long (20)          --kills N   how many programs are killed (100)
  --seed N      which ones, and when   --write     keeps the table in docs/results
  --help        this text

Example: npm run soak -- --minutes 5 --kills 25
`

await runMain(async () => {
  if (helps(usage)) return
  requireSupportedSystem()
  if (!(await withSupportedNode(fileURLToPath(import.meta.url)))) return
  const [first, ...rest] = process.argv.slice(2)
  if (simulationNames.includes(first)) {
    if (!(await soakSimulation(await ensureZig(), first, rest))) process.exitCode = 1
    return
  }
  await ensurePackages()
  await must('Making the database client', process.execPath, [inRoot('scripts/prisma.mjs'), 'generate'])
  const { parse, run } = first === 'update' ? await updateSoak() : await killSoak()
  let options
  try {
    options = parse(first === 'update' ? rest : process.argv.slice(2))
  } catch (error) {
    throw new UserError(error.message)
  }
  await buildEdge(await ensureZig())
  const isGood = await run(options, say, inRoot('docs/results'))
  if (!isGood) process.exitCode = 1
})

async function killSoak() {
  const { parseSoakOptions, runSoak } = await import('../e2e/soak/main.ts')
  return { parse: parseSoakOptions, run: runSoak }
}

async function updateSoak() {
  const { parseUpdateSoakOptions, runUpdateSoak } = await import('../e2e/soak/updates/main.ts')
  return { parse: parseUpdateSoakOptions, run: runUpdateSoak }
}
