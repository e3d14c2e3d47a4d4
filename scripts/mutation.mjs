// `npm run mutation`: makes small mistakes in the edge's sources, and counts those that no test finds.
import { fileURLToPath } from 'node:url'
import { runMain } from './lib/fail.mjs'
import { requireSupportedSystem, withSupportedNode } from './lib/toolchain.mjs'

await runMain(async () => {
  requireSupportedSystem()
  if (!(await withSupportedNode(fileURLToPath(import.meta.url)))) return
  const { mutation } = await import('./mutation/main.mjs')
  process.exitCode = await mutation(process.argv.slice(2))
})
