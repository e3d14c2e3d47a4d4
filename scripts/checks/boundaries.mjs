// Who may import whom in the TypeScript half (docs/ARCHITECTURE.md). build.zig enforces the same for Zig.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { trackedFiles } from './tracked-files.mjs'

/** Layers of apps/api/src from the ground up; a folder may import itself and what stands before it in its list. */
const apiLayers = {
  domain: [],
  errors: ['domain'],
  services: ['domain', 'errors'],
  auth: ['domain', 'errors', 'services'],
  trpc: ['domain', 'errors', 'services', 'auth'],
  routers: ['domain', 'errors', 'services', 'auth', 'trpc'],
  rest: ['domain', 'errors', 'services', 'auth', 'trpc', 'routers'],
  observe: ['domain', 'errors', 'services'],
  edge: ['domain', 'errors', 'services'],
  jobs: ['domain', 'errors', 'services'],
  demo: ['domain', 'errors', 'services', 'auth'],
}
const serviceForbidden = [/^@trpc\//, /^fastify/, /^@fastify\//]
const importPattern =
  /(?:^|\n)\s*(?:import|export)\s[^'"]*?from\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)import\s+['"]([^'"]+)['"]/g

export function checkBoundaries() {
  const problems = []
  for (const file of trackedFiles(/\.(ts|tsx|mts)$/)) {
    const isTest = /\.(test|spec)\.tsx?$/.test(file) || /\/test\//.test(file)
    const text = readFileSync(file, 'utf8')
    for (const match of text.matchAll(importPattern)) {
      const target = match[1] ?? match[2] ?? match[3]
      const statement = match[0]
      const complain = (rule) => problems.push(`${file}: imports ${target}; ${rule}`)
      if (file.startsWith('packages/') && /^@bootfarm\/(api|web|e2e)/.test(target))
        complain('packages never import apps')
      if (target.startsWith('.') && !isTest) checkReach(file, target, complain)
      if (file.startsWith('apps/web/')) checkWeb(file, target, statement, complain)
      if (file.startsWith('apps/api/src/') && !isTest) checkApi(file, target, complain)
    }
    if (file.startsWith('apps/api/src/') && !isTest && /process\.env/.test(text) && !/\/(env|cli)\.ts$/.test(file)) {
      problems.push(`${file}: reads process.env; take the value from env.ts`)
    }
  }
  return problems
}

const workspaceOf = (file) =>
  file
    .split('/')
    .slice(0, file.startsWith('e2e') || file.startsWith('scripts') ? 1 : 2)
    .join('/')

/** Tests share with `npm start` and the benchmarks how networks and machines are made, and which ports are whose. */
function checkReach(file, target, complain) {
  const reached = path.join(path.dirname(file), target)
  const shared = ['scripts/lib/lab/', 'scripts/lib/machines/', 'scripts/lib/free-ports.mjs', 'scripts/start/relay.mjs']
  if (file.startsWith('e2e/') && shared.some((start) => reached.startsWith(start))) return
  if (workspaceOf(reached) !== workspaceOf(file)) complain('reach another workspace by its package name')
}

function checkWeb(file, target, statement, complain) {
  if (target.startsWith('@bootfarm/api') && !/import\s+type\b|export\s+type\b/.test(statement))
    complain('web takes only types from the API')
  if (/^@bootfarm\/db/.test(target)) complain('web never touches the database')
  if (file.startsWith('apps/web/src/components/') && /features\//.test(target))
    complain('components know no product nouns; move it to features/')
  if (file.startsWith('apps/web/src/lib/') && /(features|components|app)\//.test(target))
    complain('lib stands below features and components')
}

function checkApi(file, target, complain) {
  const layer = file.split('/')[3]
  if (layer === 'services' && serviceForbidden.some((pattern) => pattern.test(target)))
    complain('services know neither tRPC nor Fastify')
  if (/^@bootfarm\/db/.test(target) && layer === 'domain') complain('domain is pure')
  if (!target.startsWith('.') || !(layer in apiLayers)) return
  const reached = path.join(path.dirname(file), target).split('/')[3]
  if (reached in apiLayers && reached !== layer && !apiLayers[layer].includes(reached)) {
    complain(`${layer} may import only ${[layer, ...apiLayers[layer]].join(', ')}`)
  }
}
