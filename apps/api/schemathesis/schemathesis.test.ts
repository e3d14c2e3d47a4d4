import { afterAll, beforeAll, expect, test } from 'vitest'
import { newApiKeySecret } from '../src/api-key/api-key-secret.ts'
import { runProgram } from '../test/run-program.ts'
import { createSampleTenant } from '../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../test/test-api.ts'
import { createPerson } from '../test/test-tenant.ts'

/** scripts/lib/toolchain.mjs installs it: these tests run as a separate layer. */
const installed = process.env.BOOTFARM_SCHEMATHESIS ?? ''
/** `npm test` asks little of each operation, `npm run test:all` much. */
const examples = process.env.BOOTFARM_SCHEMATHESIS_EXAMPLES ?? '2'
const seconds = process.env.BOOTFARM_SCHEMATHESIS_SECONDS ?? '20'
const checks = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'unsupported_method',
]

let api: TestApi
let secret: string

beforeAll(async () => {
  api = await startTestApi()
  const { organizationId } = await createSampleTenant(api, 'own')
  const { email } = await createPerson(api, organizationId, 'admin')
  const user = await api.db.user.findUniqueOrThrow({ where: { email }, select: { id: true } })
  const { secret: made, ...key } = newApiKeySecret()
  secret = made
  await api.db.apiKey.create({
    data: {
      ...key,
      organizationId,
      name: 'schemathesis',
      role: 'admin',
      requestsPerMinute: 1_000_000,
      createdByUserId: user.id,
      createdAt: api.clock.now,
    },
  })
})
afterAll(() => api.close())

function run(args: string[]) {
  return runProgram({
    program: 'python3',
    args: ['-m', 'schemathesis.cli', ...args],
    env: { PYTHONPATH: installed, PYTHONDONTWRITEBYTECODE: '1' },
    cwd: installed,
  })
}

test('finds no 5xx and no answer that the document does not have', { timeout: 1_800_000 }, async () => {
  const { code, output } = await run([
    'run',
    `${api.url}/api/openapi.json`,
    '--url',
    `${api.url}/api/v1`,
    '--header',
    `Authorization: Bearer ${secret}`,
    '--checks',
    checks.join(','),
    '--max-examples',
    examples,
    '--max-time',
    seconds,
    '--seed',
    '1',
    '--phases',
    'examples,coverage,fuzzing',
    '--no-color',
    '--generation-database',
    'none',
    '--suppress-health-check',
    'all',
    '--warnings',
    'off',
    '--continue-on-failure',
  ])
  expect([code, code === 0 ? '' : output.slice(-20_000)]).toEqual([0, ''])
})
