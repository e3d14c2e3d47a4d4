import { fileURLToPath } from 'node:url'
import { runMain } from '../lib/fail.mjs'
import { requireSupportedSystem, withSupportedNode } from '../lib/toolchain.mjs'

await runMain(async () => {
  requireSupportedSystem()
  if (!(await withSupportedNode(fileURLToPath(new URL('../test.mjs', import.meta.url))))) return
  const { testEverything } = await import('./layers.mjs')
  process.exitCode = await testEverything(process.argv.slice(2))
})
