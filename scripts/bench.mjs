// `npm run bench` lists the benchmarks; `npm run bench -- NAME` runs one.
import { fileURLToPath } from 'node:url'
import { runMain } from './lib/fail.mjs'
import { requireSupportedSystem, withSupportedNode } from './lib/toolchain.mjs'

await runMain(async () => {
  requireSupportedSystem()
  if (!(await withSupportedNode(fileURLToPath(import.meta.url)))) return
  const { runBench } = await import('./bench/main.mjs')
  await runBench(process.argv.slice(2))
})
