// `npm run build`: the edge's programs, optimised, into edge/streamer-zig/zig-out/bin; nothing is started.
import { fileURLToPath } from 'node:url'
import { runMain } from './lib/fail.mjs'
import { buildEdge, ensureZig, requireSupportedSystem, withSupportedNode } from './lib/toolchain.mjs'

await runMain(async () => {
  requireSupportedSystem()
  if (!(await withSupportedNode(fileURLToPath(import.meta.url)))) return
  await buildEdge(await ensureZig())
})
