import { fileURLToPath } from 'node:url'
import { runMain } from '../lib/fail.mjs'
import { helps } from '../lib/help.mjs'
import { requireSupportedSystem, withSupportedNode } from '../lib/toolchain.mjs'

const usage = `Usage: npm test -- [layer ...]
       npm run test:all -- [layer ...]

Runs every layer of the tests, or only those that are named. test:all runs those that take long, too. A run prints the
names of its layers, and the time that each takes.

  quick    static checks, types, and the unit tests of what changed since main: about a minute
  --help   this text

Examples: npm test -- quick
          npm test -- tidy services
`

await runMain(async () => {
  if (helps(usage)) return
  requireSupportedSystem()
  if (!(await withSupportedNode(fileURLToPath(new URL('../test.mjs', import.meta.url))))) return
  const { testEverything } = await import('./layers.mjs')
  const words = process.argv.slice(2)
  const only = words.filter((word) => word !== '--all')
  process.exitCode = await testEverything(only, { withLong: words.includes('--all') })
})
