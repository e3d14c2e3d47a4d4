import { fileURLToPath } from 'node:url'
import { runMain } from '../lib/fail.mjs'
import { requireSupportedSystem, withSupportedNode } from '../lib/toolchain.mjs'

await runMain(async () => {
  requireSupportedSystem()
  if (!(await withSupportedNode(fileURLToPath(new URL('../test.mjs', import.meta.url))))) return
  const { testEverything } = await import('./layers.mjs')
  const words = process.argv.slice(2)
  const only = words.filter((word) => word !== '--all')
  process.exitCode = await testEverything(only, { withLong: words.includes('--all') })
})
