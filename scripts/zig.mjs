// `node scripts/zig.mjs ARGS`: runs the project's Zig with these arguments.
import { spawnSync } from 'node:child_process'
import { runMain } from './lib/fail.mjs'
import { ensureZig } from './lib/toolchain.mjs'

await runMain(async () => {
  const result = spawnSync(await ensureZig(), process.argv.slice(2), { stdio: 'inherit' })
  process.exitCode = result.status ?? 1
})
