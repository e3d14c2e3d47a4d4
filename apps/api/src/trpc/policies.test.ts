import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inputOfSample, type SampleTenant, samples } from '../../test/procedure-samples.ts'
import { createSampleTenant } from '../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure } from '../../test/test-client.ts'
import { createTenant, signInAs, signInAsPlatformOperator } from '../../test/test-tenant.ts'
import { roleHas, roles } from '../domain/permissions.ts'
import { procedurePolicies } from './policies.ts'
import { isMemberPolicy } from './policy.ts'

let api: TestApi
let tenant: SampleTenant
const cookies = new Map<string, string>()

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createSampleTenant(api, 'own')
  const other = await createTenant(api, 'other')
  for (const role of roles) cookies.set(role, await signInAs(api, tenant.organizationId, role))
  cookies.set('other organization', await signInAs(api, other.organizationId, 'owner'))
  cookies.set('platform operator', await signInAsPlatformOperator(api))
  cookies.set('without membership', await signInAs(api, other.organizationId, null))
})
afterAll(() => api.close())

const procedures = procedurePolicies()

function call(procedure: (typeof procedures)[number], who: string, id?: string) {
  return callWith(procedure, cookies.get(who), id)
}

function callWith(procedure: (typeof procedures)[number], cookie: string | undefined, id?: string) {
  const input = inputOfSample(procedure.path, tenant, id)
  return callProcedure(api, { path: procedure.path, type: procedure.type, input, cookie })
}

const ownIdOf = (path: string) => samples[path]?.ownId?.(tenant)

test('every procedure has a sample here', () => {
  expect(Object.keys(samples).sort()).toEqual(procedures.map(({ path }) => path).sort())
})

test('an API with a procedure without a policy does not start', () => {
  const open = { _def: { procedures: { 'a.b': { _def: { type: 'query' } } } } }
  expect(() => procedurePolicies(open)).toThrow('The procedure a.b has no policy')
})

const outside = procedures.filter(({ policy }) => !isMemberPolicy(policy))
const forMembers = procedures.flatMap((procedure) =>
  isMemberPolicy(procedure.policy) ? [{ ...procedure, policy: procedure.policy }] : [],
)

describe.each(outside)('$path, for $policy.who', (procedure) => {
  const who = isMemberPolicy(procedure.policy) ? undefined : procedure.policy.who

  test('is open to whom its policy says and to nobody else', async () => {
    const answerTo = async (name: string) => (await call(procedure, name)).code
    const open = ['anonymous', 'without membership', 'owner', 'platform operator']
    for (const name of open) {
      const code = await answerTo(name)
      if (who !== 'anyone' && name === 'anonymous') expect(code).toBe('unauthenticated')
      else if (who === 'platform' && name !== 'platform operator') expect(code).toBe('forbidden')
      else expect(['unauthenticated', 'forbidden', 'internal']).not.toContain(code)
    }
  })

  test('says to a stranger nothing of the organization', async () => {
    for (const name of ['anonymous', 'other organization', 'platform operator']) {
      const { text } = await call(procedure, name)
      for (const id of [tenant.farmId, tenant.siteId, tenant.edgeId, tenant.bootId, ...tenant.deviceIds])
        expect(text).not.toContain(id)
    }
  })
})

describe.each(forMembers)('$path', (procedure) => {
  const { path, policy } = procedure
  const takesId = samples[path]?.idName !== undefined

  test.each(['anonymous', 'without membership'])('is closed to %s, whatever the input', async (who) => {
    for (const id of [ownIdOf(path), randomUUID(), 'no id']) {
      const answer = await call(procedure, who, id)
      expect([answer.status, answer.code]).toEqual([401, 'unauthenticated'])
    }
  })

  test.each(roles)('does for %s what its policy says', async (who) => {
    const cookie = samples[path]?.isLast ? await signInAs(api, tenant.organizationId, who) : cookies.get(who)
    const answer = await callWith(procedure, cookie, ownIdOf(path))
    if (roleHas(who, policy.permission)) expect(answer.status).toBe(200)
    else expect([answer.status, answer.code]).toEqual([403, 'forbidden'])
  })

  test('shows another organization nothing', async () => {
    const foreign = await call(procedure, 'other organization', ownIdOf(path))
    for (const id of [tenant.farmId, tenant.siteId, tenant.edgeId, tenant.bootId, ...tenant.deviceIds])
      expect(foreign.text).not.toContain(id)
    if (!takesId) return
    const absent = await call(procedure, 'other organization', randomUUID())
    expect([foreign.status, foreign.code]).toEqual([404, 'not_found'])
    expect(foreign.text).toBe(absent.text)
  })

  if (!takesId) return
  test('refuses an id that is none', async () => {
    const answer = await call(procedure, 'owner', '1 or 1=1')
    expect([answer.status, answer.code]).toEqual([400, 'invalid'])
    expect(answer.text).not.toMatch(/stack|node_modules|\.ts/)
  })
})
