import { fileURLToPath } from 'node:url'
import { runMain } from '../lib/fail.mjs'
import { requireSupportedSystem, withSupportedNode } from '../lib/toolchain.mjs'
import { readOptions, usage } from './options.mjs'

await runMain(async () => {
  requireSupportedSystem()
  const options = readOptions(process.argv.slice(2))
  if (options.help) {
    process.stdout.write(usage)
    return
  }
  if (!(await withSupportedNode(fileURLToPath(new URL('../start.mjs', import.meta.url))))) return
  const { startProduct } = await import('./product.mjs')
  await startProduct(options)
})
