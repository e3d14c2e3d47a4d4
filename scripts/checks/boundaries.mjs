// Checks the imports of the TypeScript half (docs/ARCHITECTURE.md). build.zig enforces the same for Zig.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { trackedFiles } from './tracked-files.mjs'

/**
 * The levels of apps/api/src: a part imports only itself and the parts in its list. Every folder that is not listed is
 * a noun: its schema, router, rows, services and their tests. Nouns are peers: a noun imports only the schemas and the
 * `public.ts` of another, and never in a cycle. `public.ts` names what the noun offers; nothing else re-exports. Nouns
 * that only react to changes (audit, webhook) have no `public.ts`: listeners.ts connects them to events/event-bus.ts.
 */
const groundFloors = ['rules', 'errors', 'context', 'events', 'access', 'secrets']
const apiFloors = {
  rules: [],
  errors: ['rules'],
  context: ['rules', 'errors'],
  events: ['rules', 'errors', 'context'],
  access: ['rules', 'errors', 'context'],
  secrets: ['rules', 'errors', 'context'],
  noun: groundFloors,
  router: [...groundFloors, 'noun', 'http/trpc'],
  uplink: [...groundFloors, 'noun'],
  'uplink/routes': ['rules', 'errors', 'context', 'noun', 'uplink'],
  'http/auth': ['rules', 'errors', 'context', 'events', 'noun'],
  'http/turns': ['rules', 'errors'],
  'http/trpc': [...groundFloors, 'noun', 'router', 'http/auth', 'http/turns'],
  'http/rest': ['rules', 'errors', 'context', 'access', 'noun', 'http/auth', 'http/trpc'],
  'http/observe': ['rules', 'errors', 'context', 'noun'],
  jobs: ['rules', 'errors', 'context', 'secrets', 'noun'],
  mail: ['rules', 'secrets'],
  demo: ['rules', 'errors', 'context', 'secrets', 'noun', 'http/auth'],
}
const serviceForbidden = [/^@trpc\//, /^fastify/, /^@fastify\//]
const importPattern =
  /(?:^|\n)\s*(?:import|export)\s[^'"]*?from\s*['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)import\s+['"]([^'"]+)['"]/g

export function checkBoundaries() {
  const problems = []
  const nouns = new Map()
  for (const file of trackedFiles(/\.(ts|tsx|mts)$/)) {
    const isTest = /\.(test|spec)\.tsx?$/.test(file) || /\/test\//.test(file)
    const text = readFileSync(file, 'utf8')
    for (const match of text.matchAll(importPattern)) {
      const target = match[1] ?? match[2] ?? match[3]
      const statement = match[0]
      const fail = (rule) => problems.push(`${file}: imports ${target}; ${rule}`)
      if (file.startsWith('packages/') && /^@bootfarm\/(api|web|e2e)/.test(target)) fail('packages never import apps')
      if (target.startsWith('.') && !isTest) checkReach(file, target, fail)
      if (file.startsWith('apps/web/')) checkWeb(file, target, statement, fail)
      if (file.startsWith('apps/api/src/') && !isTest) {
        const pair = checkApi(file, target, fail)
        if (pair) nouns.set(pair[0], (nouns.get(pair[0]) ?? new Set()).add(pair[1]))
      }
    }
    if (file.startsWith('apps/api/src/') && !isTest && /process\.env/.test(text) && !/\/(env|cli)\.ts$/.test(file)) {
      problems.push(`${file}: reads process.env; take the value from env.ts`)
    }
  }
  return [...problems, ...circles(nouns)]
}

const workspaceOf = (file) =>
  file
    .split('/')
    .slice(0, file.startsWith('e2e') || file.startsWith('scripts') ? 1 : 2)
    .join('/')

/** Tests share these with `npm start` and the benchmarks: networks, machines and port numbers. */
function checkReach(file, target, fail) {
  const reached = path.join(path.dirname(file), target)
  const shared = ['scripts/lib/lab/', 'scripts/lib/machines/', 'scripts/lib/free-ports.mjs', 'scripts/start/relay.mjs']
  if (file.startsWith('e2e/') && shared.some((start) => reached.startsWith(start))) return
  if (workspaceOf(reached) !== workspaceOf(file)) fail('reach another workspace by its package name')
}

function checkWeb(file, target, statement, fail) {
  if (target.startsWith('@bootfarm/api') && !/import\s+type\b|export\s+type\b/.test(statement))
    fail('web takes only types from the API')
  if (/^@bootfarm\/db/.test(target)) fail('web never touches the database')
  if (file.startsWith('apps/web/src/components/') && /features\//.test(target))
    fail('components know no product nouns; move it to features/')
  if (file.startsWith('apps/web/src/lib/') && /(features|components|app)\//.test(target))
    fail('lib stands below features and components')
}

/**
 * Returns the part of apps/api/src that a file belongs to: one of `apiFloors`, or null for programs and their parts.
 */
function apiPartOf(file) {
  const [folder, inner, ...rest] = file.split('/').slice(3)
  if (inner === undefined || inner === 'cli.ts') return null
  if (rest.length > 0 && `${folder}/${inner}` in apiFloors) return `${folder}/${inner}`
  if (folder in apiFloors) return folder
  return /(^|-)router\.ts$/.test(inner) ? 'router' : 'noun'
}

const nounOf = (file) => file.split('/')[3]
const isSchema = (file) => /(^|[-/])schema\.ts$/.test(file)

function checkApi(file, target, fail) {
  const part = apiPartOf(file)
  if (part === null) return null
  const isService = ['noun', 'uplink', 'context', 'events', 'access', 'secrets'].includes(part)
  if (isService && serviceForbidden.some((pattern) => pattern.test(target)))
    fail('services know neither tRPC nor Fastify; do it in router.ts or below http/')
  if (/^@bootfarm\/db/.test(target) && (part === 'rules' || isSchema(file)))
    fail('rules and schemas are pure; read the database in a service')
  if (!target.startsWith('.')) return null
  const reached = path.join(path.dirname(file), target)
  const reachedPart = apiPartOf(reached)
  if (reachedPart === null) {
    fail('nothing imports main; take it as an argument, or move it to rules/')
    return null
  }
  const isNoun = part === 'noun' || part === 'router'
  if (isNoun && reachedPart === 'noun' && nounOf(file) !== nounOf(reached)) {
    const noun = nounOf(reached)
    if (!isSchema(reached) && !reached.endsWith('/public.ts'))
      fail(`export it from ${noun}/public.ts and import that; tell audit and webhooks by events/event-bus.ts`)
    return part === 'noun' ? [nounOf(file), noun] : null
  }
  if (reachedPart !== part && !apiFloors[part].includes(reachedPart))
    fail(`${part} may import only ${[part, ...apiFloors[part]].join(', ')}; move what both need to a lower floor`)
  return null
}

/**
 * @param {Map<string, Set<string>>} imported by noun
 * @returns the first circle found from each noun that lies in one
 */
function circles(imported) {
  const problems = []
  const done = new Set()
  const visit = (noun, trail) => {
    const at = trail.indexOf(noun)
    if (at >= 0) {
      const circle = [...trail.slice(at), noun].join(' -> ')
      problems.push(
        `apps/api/src: nouns import each other in a circle, ${circle}; emit an event, or move what both need to rules/`,
      )
    }
    if (at >= 0 || done.has(noun)) return
    for (const next of imported.get(noun) ?? []) visit(next, [...trail, noun])
    done.add(noun)
  }
  for (const noun of imported.keys()) visit(noun, [])
  return problems
}
