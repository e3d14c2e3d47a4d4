import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EdgeClient } from '../../../test/edge-client.ts'
import { ask, inTurns } from '../../../test/matrix/ask.ts'
import { apiKey, type Caller, nobodies, person, serviceAccount } from '../../../test/matrix/callers.ts'
import { createNeighbours, type Neighbours } from '../../../test/matrix/neighbours.ts'
import { idsWithin, rowsOf } from '../../../test/matrix/tenant-secrets.ts'
import { verdictOf } from '../../../test/matrix/verdict.ts'
import { inputOfSample, samples } from '../../../test/procedure-samples.ts'
import type { SampleTenant } from '../../../test/sample.ts'
import { createSampleTenant } from '../../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { signInAsPlatformOperator } from '../../../test/test-tenant.ts'
import { permissions, roles } from '../../rules/permissions.ts'
import { procedurePolicies } from './policies.ts'
import { isMemberPolicy } from './policy.ts'

// Every procedure x everybody x every kind of id, with what the policy's data promises. Other organizations:
// foreign.test.ts.

let api: TestApi
let tenant: SampleTenant
let beside: Neighbours
let nobody: Record<string, Record<string, string>>
let whole: Caller[]
let scoped: Caller[]
let keys: Caller[]
let operator: Record<string, string>

const procedures = procedurePolicies()
const takesId = (path: string) => samples[path]?.idName !== undefined
const ownIdOf = (path: string) => samples[path]?.ownId?.(tenant)
const inputWith = (path: string, id?: string) => inputOfSample(path, tenant, id)
/** A page that holds all there is. */
const inputOfList = (path: string) => inputWith(path) && { ...inputWith(path), limit: 100 }
/** A key acts for itself: these are for people. */
const peopleOnly = new Set([
  'alert.subscription',
  'alert.subscribe',
  'apiKey.create',
  'apiKey.rotate',
  'apiKey.takeOver',
  'edge.rotateSigningKey',
  'organization.askDeletion',
  'organization.cancelDeletion',
])

/** A role of a place in which none of the samples is. */
const isElsewhere = ({ grant: { scope } }: Caller) =>
  scope.siteId === beside.siteId || scope.collectionId === beside.collectionId

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createSampleTenant(api, 'own')
  beside = await createNeighbours(api, tenant)
  const { organizationId, farmId, siteId, collectionId } = tenant
  const edge = new EdgeClient(api.url)
  nobody = { ...(await nobodies(api, organizationId)), 'an edge’s signature': edge.signatureOf('GET', '/') }
  const of = (scope: Caller['grant']['scope'], name: string, role: (typeof roles)[number] = 'owner') =>
    person(api, organizationId, { role, scope, name })
  whole = await Promise.all(roles.map((role) => person(api, organizationId, { role })))
  scoped = await Promise.all([
    of({ farmId, siteId, collectionId: null }, 'owner of the site'),
    of({ farmId, siteId, collectionId }, 'owner of the collection'),
    of({ farmId, siteId: beside.siteId, collectionId: null }, 'owner of another site'),
    of({ farmId, siteId, collectionId: beside.collectionId }, 'owner of another collection'),
    of({ farmId, siteId: beside.siteId, collectionId: null }, 'viewer of another site', 'viewer'),
    serviceAccount(api, organizationId, {
      role: 'operator',
      scope: { farmId, siteId: beside.siteId, collectionId: null },
      name: 'service account of another site',
    }),
  ])
  keys = await Promise.all([
    ...(['owner', 'viewer'] as const).map((role) => apiKey(api, organizationId, role)),
    ...(['admin', 'operator'] as const).map((role) => serviceAccount(api, organizationId, { role })),
  ])
  operator = { cookie: await signInAsPlatformOperator(api) }
})
afterAll(() => api.close())

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
  const { path } = procedure
  const who = isMemberPolicy(procedure.policy) ? undefined : procedure.policy.who

  test('is open exactly to the callers of its policy', async () => {
    const owner = whole.find(({ name }) => name === 'owner')?.headers
    const callers = { ...nobody, owner, 'platform operator': operator }
    for (const [name, headers = {}] of Object.entries(callers)) {
      const { code } = await ask(api, procedure, { headers, input: inputWith(path) })
      const isSomebody = ['without membership', 'owner', 'platform operator'].includes(name)
      if (who !== 'anyone' && !isSomebody) expect([name, code]).toEqual([name, 'unauthenticated'])
      else if (who === 'platform' && name !== 'platform operator') expect([name, code]).toEqual([name, 'forbidden'])
      else expect(['unauthenticated', 'forbidden', 'internal']).not.toContain(code)
    }
  })
})

describe.each(forMembers)('$path', (procedure) => {
  const { path, policy } = procedure

  /** An edge takes only so many jobs: those that the samples order are over when the next procedure's turn comes. */
  afterAll(() =>
    api.db.storeJob.updateMany({
      where: { state: 'queued', id: { notIn: tenant.versionSpares.jobIds } },
      data: { state: 'cancelled', endedAt: api.clock.now },
    }),
  )

  /** A caller whose request ends his own membership is replaced each time. */
  async function headersFor({ headers, grant, organizationId }: Caller): Promise<Record<string, string>> {
    if (!samples[path]?.isLast) return headers
    return (await person(api, organizationId, grant)).headers
  }

  test('is closed to every form of anonymous caller, with any id', async () => {
    const ids = takesId(path) ? [ownIdOf(path), randomUUID(), 'no id'] : [undefined]
    const cells = Object.entries(nobody).flatMap(([who, headers]) =>
      (who === 'anonymous' ? ids : ids.slice(0, 1)).map((id) => ({ who, headers, id })),
    )
    await inTurns(cells, async ({ who, headers, id }) => {
      const told = await ask(api, procedure, { headers, input: inputWith(path, id) })
      expect([who, id, told.status, told.code]).toEqual([who, id, 401, 'unauthenticated'])
    })
  })

  test('follows its policy for each role and key', async () => {
    let id = ownIdOf(path)
    for (const caller of [...whole, ...keys]) {
      const { name, grant } = caller
      const isAllowed =
        (permissions[policy.permission].roles as readonly string[]).includes(grant.role) &&
        !(keys.includes(caller) && peopleOnly.has(path))
      const told = await ask(api, procedure, {
        headers: await headersFor(caller),
        input: inputWith(path, id),
      })
      if (isAllowed) expect([name, told.status, told.text]).toEqual([name, 200, told.text])
      else expect([name, told.status, told.code]).toEqual([name, 403, 'forbidden'])
      // A deleted object belongs to nobody.
      if (isAllowed) id = ownIdOf(path)
    }
  })

  test('follows its policy for a role of one place, and answers not_found beyond it', async () => {
    let id = ownIdOf(path)
    for (const caller of scoped) {
      const { name, grant, organizationId } = caller
      const headers = await headersFor(caller)
      const input = (inputWith(path, id) ?? {}) as Record<string, unknown>
      const isList = procedure.type !== 'mutation' && !takesId(path)
      const verdict = await verdictOf(api, policy, { grant, organizationId, input, isList })
      const told = await ask(api, procedure, { headers, input: inputWith(path) && input })
      const isRefused = peopleOnly.has(path) && name.startsWith('service account')
      if (verdict === 'ok' && !isRefused) expect([name, told.status, told.text]).toEqual([name, 200, told.text])
      if (verdict === 'forbidden') expect([name, told.status, told.code]).toEqual([name, 403, 'forbidden'])
      if (verdict === 'within') {
        // A member is of no place: whose role holds here, too, is seen, with what of it holds here.
        const idName = samples[path]?.idName ?? ''
        const isHere = !isElsewhere(caller) || !idName || ['userId', 'serviceAccountId'].includes(idName)
        const expected = [403, 404, ...(isHere ? [200] : [])]
        if (grant.scope.siteId === beside.siteId) expect(told.text).not.toContain(tenant.siteId)
        expect([name, expected.includes(told.status), told.text]).toEqual([name, true, told.text])
      }
      if (verdict === 'absent') {
        const absent = await ask(api, procedure, { headers, input: inputWith(path, randomUUID()) })
        expect([name, told]).toEqual([name, absent])
        expect([name, told.status, told.code]).toEqual([name, 404, 'not_found'])
      }
      if (told.status === 200) id = ownIdOf(path)
    }
  })

  if (!takesId(path)) return
  test('refuses an id that is none', async () => {
    const isLookedUpFirst = typeof policy.place !== 'string'
    await inTurns(
      [whole[0], whole[5], scoped[2], keys[0]].filter((one) => one !== undefined),
      async ({ name, headers }) => {
        const told = await ask(api, procedure, { headers, input: inputWith(path, '1 or 1=1') })
        const expected = isLookedUpFirst ? [400] : [400, 403]
        expect([name, expected.includes(told.status), told.status]).toEqual([name, true, told.status])
        expect(told.text).not.toMatch(/stack|node_modules|\.ts/)
      },
    )
  })
})

const lists = forMembers.filter(({ path, type }) => type === 'query' && !takesId(path))

describe.each(lists)('the list $path', (procedure) => {
  const { path, policy } = procedure

  test('shows a role of one place nothing that lies beside it', async () => {
    const answers: { caller: Caller; text: string }[] = []
    for (const caller of scoped) {
      const { status, text } = await ask(api, procedure, { headers: caller.headers, input: inputOfList(path) })
      if (status !== 403) answers.push({ caller, text })
    }
    const rows = await rowsOf(api.db, tenant.organizationId)
    for (const { caller, text } of answers) {
      const { siteId, collectionId } = caller.grant.scope
      const outside = idsWithin(rows, (row, table) => {
        if (table === 'site') return row.id !== siteId
        if (row.site_id && row.site_id !== siteId) return true
        return collectionId !== null && Boolean(row.collection_id) && row.collection_id !== collectionId
      })
      expect(outside.length).toBeGreaterThan(0)
      expect([caller.name, outside.filter((id) => text.includes(id))]).toEqual([caller.name, []])
    }
    expect(policy.place).toBeDefined()
  })
})

test('what lists keep from a role of one place is there for a role of all', async () => {
  const owner = whole[0]
  const shown = await Promise.all(
    lists.map(async (list) => {
      const { text } = await ask(api, list, { headers: owner?.headers ?? {}, input: inputOfList(list.path) })
      return text
    }),
  )
  const rows = await rowsOf(api.db, tenant.organizationId)
  for (const table of [
    'site',
    'collection',
    'device',
    'edge',
    'boot_key',
    'schedule',
    'discovered_device',
    'webhook_event',
  ]) {
    const ids = idsWithin(rows, (row, of) => of === table && row.site_id === beside.siteId)
    for (const id of ids) expect([table, shown.some((text) => text.includes(id))]).toEqual([table, true])
  }
})
