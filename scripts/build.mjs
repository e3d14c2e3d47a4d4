// `npm run build`: the edge's programs, optimised, into edge/streamer-zig/zig-out/bin; nothing is started.
import { fileURLToPath } from 'node:url'
import { runMain } from './lib/fail.mjs'
import { helps } from './lib/help.mjs'
import { buildEdge, ensureZig, requireSupportedSystem, withSupportedNode } from './lib/toolchain.mjs'

const usage = `Usage: npm run build

Builds the edge's programs, optimised, into edge/streamer-zig/zig-out/bin. Starts nothing. It takes minutes on two cores.

  --help   this text

Example: npm run build && edge/streamer-zig/zig-out/bin/bootfarm-edge --help
`

await runMain(async () => {
  if (helps(usage)) return
  requireSupportedSystem()
  if (!(await withSupportedNode(fileURLToPath(import.meta.url)))) return
  await buildEdge(await ensureZig())
})
