import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bootReports, bootWith, discoveredWith, EdgeClient } from '../../../test/edge-client.ts'
import { ask, askByRest, inTurns } from '../../../test/matrix/ask.ts'
import { type Caller, person } from '../../../test/matrix/callers.ts'
import { rowsOf } from '../../../test/matrix/tenant-secrets.ts'
import { inputOfSample, samples } from '../../../test/procedure-samples.ts'
import type { SampleTenant } from '../../../test/sample.ts'
import { createSampleTenant } from '../../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../../test/test-api.ts'
import { makeJoinToken } from '../../../test/test-tenant.ts'
import { roles } from '../../rules/permissions.ts'
import type { Place } from '../../rules/place.ts'
import { procedurePolicies } from './policies.ts'
import { isMemberPolicy } from './policy.ts'

// Every field of every query: an answer to a role of one place has neither ids nor names of what lies beside the place,
// and no count that grows with it. So it stays the same, byte by byte, while everything that exists is added beside.

/** The figures of a whole organization, which its policy shows to every member. */
const ofOrganization = new Set(['organization.usage'])

const queries = procedurePolicies().filter(({ policy, type }) => isMemberPolicy(policy) && type === 'query')

/** A site's edge, which reports boots and unknown machines there. */
interface Reporter {
  edge: EdgeClient
  place: { organizationId: string; siteId: string; collectionId: string }
  /** The next report's. */
  seq: number
}

let api: TestApi
let tenant: SampleTenant
let reporters: Reporter[]
let macCount = 0

const inputOf = (path: string) => {
  const input = inputOfSample(path, tenant, samples[path]?.ownId?.(tenant))
  // A page that holds all there is.
  return input && !samples[path]?.idName ? { ...input, limit: 100 } : input
}

/** A device that boots a vDisk and shows a menu that the samples have too, in a collection that does the same. */
async function addBeside(reporter: Reporter): Promise<void> {
  const { edge, place } = reporter
  const { organizationId, siteId } = place
  const shared = { vdiskId: tenant.vdiskId, bootMenuId: tenant.spareMenuIds[0] ?? '' }
  const named = () => `beside-${randomUUID()}`
  await api.db.collection.create({ data: { organizationId, siteId, name: named(), ...shared } })
  const ofCollection = { organizationId, siteId, collectionId: place.collectionId, keyLabel: 'key_waits' as const }
  const macs = [1, 2].map(() => `02:bf:00:00:0b:${(macCount++).toString(16).padStart(2, '0')}`)
  const [mac = '', ownMac = ''] = macs
  const claim = { keyClaimed: Uint8Array.from(Buffer.alloc(32, 1)), keyClaimedAt: api.clock.now }
  await api.db.device.create({ data: { ...ofCollection, ...claim, name: named(), mac } })
  await api.db.device.create({
    data: { ...ofCollection, ...claim, ...shared, bootMenuChoice: 'own', name: named(), mac: ownMac },
  })
  const boots = bootReports(reporter.seq, [bootWith({ id: randomUUID(), mac })])
  const after = reporter.seq + boots.length
  const stranger = discoveredWith({ mac: mac.replace('02:bf', '02:be') })
  const { status } = await edge.reports(reporter.seq, [...boots, { seq: after, type: 'discovered', device: stranger }])
  expect(status).toBe(200)
  reporter.seq = after + 1
}

/** By caller and query. Owners and viewers ask by REST, too: the services behind are the same. */
async function answersTo(callers: Caller[]): Promise<Map<string, string>> {
  const answers = new Map<string, string>()
  await inTurns(
    callers.flatMap((caller) => queries.map((query) => ({ caller, query }))),
    async ({ caller, query }) => {
      const isAskedTwice = ['owner', 'viewer'].includes(caller.grant.role)
      for (const door of isAskedTwice ? [ask, askByRest] : [ask]) {
        const told = await door(api, query, { headers: caller.headers, input: inputOf(query.path) })
        if (told) answers.set(`${caller.name}: ${query.path} (${door.name})`, `${told.status} ${told.text}`)
      }
    },
  )
  return answers
}

/** The ids, names and MAC addresses of every object beside the sample's site, or its collection. */
async function namesBeside(kind: 'site' | 'collection'): Promise<string[]> {
  const { organizationId, siteId, collectionId } = tenant
  const isBeside = (row: Record<string, unknown>, table: string) => {
    if (table === 'site') return row.id !== siteId
    if (row.site_id && row.site_id !== siteId) return true
    if (kind === 'site') return false
    if (table === 'collection') return row.id !== collectionId
    return Boolean(row.collection_id) && row.collection_id !== collectionId
  }
  const texts = Object.entries(await rowsOf(api.db, organizationId)).flatMap(([table, rows]) =>
    (rows as Record<string, unknown>[])
      .filter((row) => isBeside(row, table))
      .flatMap(({ id, name, mac }) => [id, name, mac]),
  )
  return texts.filter((text): text is string => typeof text === 'string' && text.length >= 8)
}

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createSampleTenant(api, 'own')
  const { organizationId, farmId, siteId } = tenant
  const beside = await api.db.site.create({
    data: { organizationId, farmId, timeZone: 'UTC', name: `beside-${randomUUID()}` },
  })
  reporters = await Promise.all(
    [siteId, beside.id].map(async (id) => {
      const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, { ...tenant, siteId: id }))
      const data = { organizationId, siteId: id, name: `beside-${randomUUID()}`, vdiskId: tenant.vdiskId }
      const collection = await api.db.collection.create({ data })
      return { edge, place: { organizationId, siteId: id, collectionId: collection.id }, seq: 1 }
    }),
  )
  const menuId = tenant.spareMenuIds[0] ?? ''
  await api.db.collection.updateMany({
    where: { organizationId, id: tenant.collectionId },
    data: { bootMenuId: menuId },
  })
})
afterAll(() => api.close())

describe.each(['site', 'collection'] as const)('a role of one %s', (kind) => {
  let callers: Caller[]
  let besides: Reporter[]

  beforeAll(async () => {
    const { organizationId, farmId, siteId, collectionId } = tenant
    const scope: Place = { farmId, siteId, collectionId: kind === 'collection' ? collectionId : null }
    callers = await Promise.all(roles.map((role) => person(api, organizationId, { role, scope })))
    besides = kind === 'site' ? reporters.slice(1) : reporters
  })

  test('reads nothing of what lies beside, in no field of any query, while objects are added there', async () => {
    for (const beside of besides) await addBeside(beside)
    const whole = await person(api, tenant.organizationId, { role: 'owner', name: 'owner of all' })
    const [before, wholeBefore] = [await answersTo(callers), await answersTo([whole])]
    for (const beside of besides) await addBeside(beside)
    const [after, wholeAfter] = [await answersTo(callers), await answersTo([whole])]
    const changed = (one: Map<string, string>, other: Map<string, string>) =>
      [...one].filter(([question, answer]) => other.get(question) !== answer).map(([question]) => question)
    const paths = changed(before, after).filter(
      (question) => ![...ofOrganization].some((path) => question.includes(path)),
    )
    expect(paths).toEqual([])
    // Whoever sees everything sees the difference in these.
    const seen = ['vdisk.get', 'bootMenu.get', 'bootMenu.list', 'farm.overview', 'device.list']
    expect(changed(wholeBefore, wholeAfter)).toEqual(
      expect.arrayContaining(seen.map((path) => `owner of all: ${path} (ask)`)),
    )
    // The owner of a place may ask everything that is not the organization's: the comparison is of answers.
    const answered = [...before].filter(([question, text]) => question.startsWith('owner:') && text.startsWith('200'))
    expect(answered.length).toBeGreaterThan(40)
    const outside = await namesBeside(kind)
    expect(outside.length).toBeGreaterThan(10)
    const leaks = [...after].flatMap(([question, text]) => {
      const found = outside.filter((one) => text.includes(one))
      return found.length > 0 ? [[question, found]] : []
    })
    expect(leaks).toEqual([])
  })
})
