/**
 * The Prisma CLI: `node scripts/prisma.mjs generate`, `… migrate dev --name x`. It runs in packages/db.
 * Takes Prisma's native schema engine where npm could download it, else the WebAssembly build of the same commit.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const packageDir = fileURLToPath(new URL('../packages/db/', import.meta.url))
const require = createRequire(path.join(packageDir, 'package.json'))
const enginesDir = path.dirname(
  createRequire(require.resolve('prisma/package.json')).resolve('@prisma/engines/package.json'),
)
const env = { ...process.env, PRISMA_HIDE_UPDATE_MESSAGE: '1', CHECKPOINT_DISABLE: '1' }
const hasNativeEngine = readdirSync(enginesDir).some((name) => name.startsWith('schema-engine-'))
if (!hasNativeEngine) env.PRISMA_SCHEMA_ENGINE_BINARY ??= path.join(packageDir, 'tools/schema-engine.mjs')

const run = spawnSync(process.execPath, [require.resolve('prisma/build/index.js'), ...process.argv.slice(2)], {
  cwd: packageDir,
  stdio: 'inherit',
  env,
})
process.exit(run.status ?? 1)
