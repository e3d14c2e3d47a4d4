// Who may import whom in the TypeScript half (docs/ARCHITECTURE.md). build.zig enforces the same for Zig.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { trackedFiles } from './tracked-files.mjs'

/**
 * Folders of apps/api/src that are no noun; every other folder is one: its schema, router, services and their tests.
 */
const apiFolders = {
  rules: [],
  errors: ['rules'],
  context: ['rules', 'errors'],
  access: ['rules', 'errors', 'context'],
  'http/auth': ['rules', 'errors', 'context', 'noun'],
  'http/trpc': ['rules', 'errors', 'context', 'access', 'noun', 'router', 'http/auth'],
  'http/rest': ['rules', 'errors', 'context', 'access', 'noun', 'http/auth', 'http/trpc'],
  'http/observe': ['rules', 'errors', 'context', 'noun'],
  noun: ['rules', 'errors', 'context', 'access', 'uplink'],
  router: ['rules', 'errors', 'context', 'access', 'noun', 'http/trpc'],
  uplink: ['rules', 'errors', 'context', 'access', 'noun'],
  'uplink/routes': ['rules', 'errors', 'context', 'noun', 'uplink'],
  jobs: ['rules', 'errors', 'context', 'noun', 'uplink'],
  mail: ['rules'],
  demo: ['rules', 'errors', 'context', 'noun', 'http/auth'],
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

/** Which part of apps/api/src a file belongs to: a folder of `apiFolders`, or null for main and what it is made of. */
function apiPartOf(file) {
  const [folder, inner, ...rest] = file.split('/').slice(3)
  if (inner === undefined) return null
  if (rest.length > 0 && `${folder}/${inner}` in apiFolders) return `${folder}/${inner}`
  if (folder in apiFolders) return folder
  return /(^|-)router\.ts$/.test(inner) ? 'router' : 'noun'
}

function checkApi(file, target, complain) {
  const part = apiPartOf(file)
  if (part === null) return
  const isService = ['noun', 'uplink', 'context', 'access'].includes(part)
  if (isService && serviceForbidden.some((pattern) => pattern.test(target)))
    complain('services know neither tRPC nor Fastify; do it in router.ts or below http/')
  if (/^@bootfarm\/db/.test(target) && (part === 'rules' || /(^|[-/])schema\.ts$/.test(file)))
    complain('rules and schemas are pure; read the database in a service')
  if (!target.startsWith('.')) return
  const reached = apiPartOf(path.join(path.dirname(file), target))
  if (reached !== null && reached !== part && !apiFolders[part].includes(reached))
    complain(`${part} may import only ${[part, ...apiFolders[part]].join(', ')}`)
}
