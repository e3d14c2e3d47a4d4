// `npm run soak`: kills programs and cuts uplinks for 20 minutes; nothing that was acknowledged may be lost.
import { fileURLToPath } from 'node:url'
import { runMain, UserError } from './lib/fail.mjs'
import { inRoot } from './lib/paths.mjs'
import { say } from './lib/progress.mjs'
import { must } from './lib/run.mjs'
import {
  buildEdge,
  ensurePackages,
  ensureZig,
  requireSupportedSystem,
  withSupportedNode,
} from './lib/toolchain.mjs'

await runMain(async () => {
  requireSupportedSystem()
  if (!(await withSupportedNode(fileURLToPath(import.meta.url)))) return
  await ensurePackages()
  await must('Making the database client', process.execPath, [inRoot('scripts/prisma.mjs'), 'generate'])
  const { parseSoakOptions, runSoak } = await import('../e2e/soak/main.ts')
  let options
  try {
    options = parseSoakOptions(process.argv.slice(2))
  } catch (error) {
    throw new UserError(error.message)
  }
  await buildEdge(await ensureZig())
  const isGood = await runSoak(options, say, inRoot('docs/results'))
  if (!isGood) process.exitCode = 1
})
