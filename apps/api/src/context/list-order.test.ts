import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inputOfSample, samples } from '../../test/procedure-samples.ts'
import { callRest, requestOf } from '../../test/rest-client.ts'
import type { SampleTenant } from '../../test/sample.ts'
import { createSampleTenant } from '../../test/sample-tenant.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { signInAs } from '../../test/test-tenant.ts'
import { type Operation, readOperations } from '../http/rest/operations.ts'

interface Page {
  items: Record<string, unknown>[]
  nextCursor: string | null
}

/** Lists of one order, which is what they mean. */
const ofOneOrder: Record<string, string> = {
  'edge.images': 'by id: nobody chose a name for them',
  'experiment.trials': 'those that ended last first',
  'rollout.edges': 'the order of the rollout',
  'schedule.runDevices': 'the order of the run',
}

const lists = readOperations().operations.filter(({ query }) => 'cursor' in query)
const sorted = lists.filter(({ query }) => 'sort' in query)

let api: TestApi
let tenant: SampleTenant
let headers: { cookie: string }

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createSampleTenant(api, 'own')
  headers = { cookie: await signInAs(api, tenant.organizationId, 'owner') }
  const { organizationId, siteId, collectionId } = tenant
  const place = { organizationId, siteId, collectionId }
  // Two that never booted, and two that booted at the same instant.
  for (const [index, lastBootStartedAt] of [null, null, new Date(1_000), new Date(1_000), new Date(2_000)].entries())
    await api.db.device.create({
      data: { ...place, name: `sorted-${index}`, mac: `02:bf:00:00:aa:0${index}`, lastBootStartedAt },
    })
})
afterAll(() => api.close())

async function pageOf(operation: Operation, more: object): Promise<Page> {
  const own = inputOfSample(operation.id, tenant, samples[operation.id]?.ownId?.(tenant))
  const { path, call } = requestOf(operation, { ...own, ...more })
  const answer = await callRest(api, path, { ...call, headers })
  expect([answer.status, answer.status === 200 ? '' : answer.text]).toEqual([200, ''])
  return answer.body as Page
}

async function readAll(operation: Operation, sort: string, limit: number): Promise<Page['items']> {
  const items: Page['items'] = []
  let cursor: string | null = null
  do {
    const page = await pageOf(operation, { sort, limit, ...(cursor ? { cursor } : {}) })
    items.push(...page.items)
    cursor = page.nextCursor
  } while (cursor)
  return items
}

const idOf = (item: Record<string, unknown>) => String(item.id ?? item.userId)

test('every list that is read page by page can be sorted, or has one order for a reason', () => {
  const unsorted = lists.filter((list) => !sorted.includes(list)).map(({ id }) => id)
  expect(unsorted.sort()).toEqual(Object.keys(ofOneOrder).sort())
})

describe.each(sorted)('$id', (operation) => {
  const choices = operation.query.sort?.enum as string[]

  test.each(choices.filter((choice) => !choice.startsWith('-')))('by %s has each row once', async (name) => {
    const upwards = await readAll(operation, name, 23)
    const ids = upwards.map(idOf)
    expect(new Set(ids).size).toBe(ids.length)
    expect((await readAll(operation, name, 100)).map(idOf)).toEqual(ids)
    expect((await readAll(operation, `-${name}`, 23)).map(idOf)).toEqual(ids.toReversed())
    const instants = upwards.map((item) => item[name]).filter((value) => typeof value === 'string')
    if (name.endsWith('At')) expect(instants).toEqual(instants.toSorted())
  })
})

const devices = lists.find(({ id }) => id === 'device.list') as Operation

test('what has no value comes before the smallest, and after the largest', async () => {
  const names = async (sort: string) => {
    const items: Page['items'] = []
    let cursor: string | null = null
    do {
      const page = await pageOf(devices, { search: 'sorted-', sort, limit: 1, ...(cursor ? { cursor } : {}) })
      items.push(...page.items)
      cursor = page.nextCursor
    } while (cursor)
    return items.map(({ name }) => name)
  }
  const upwards = await names('lastBootStartedAt')
  expect(upwards.slice(0, 2).sort()).toEqual(['sorted-0', 'sorted-1'])
  expect(upwards.slice(2, 4).sort()).toEqual(['sorted-2', 'sorted-3'])
  expect(upwards[4]).toBe('sorted-4')
  expect(await names('-lastBootStartedAt')).toEqual(upwards.toReversed())
  expect(await names('name')).toEqual(['sorted-0', 'sorted-1', 'sorted-2', 'sorted-3', 'sorted-4'])
  expect(await names('-name')).toEqual(['sorted-4', 'sorted-3', 'sorted-2', 'sorted-1', 'sorted-0'])
})

test('a field that the list is not sorted by is refused with those that it is', async () => {
  const answer = await callRest(api, '/devices?sort=mac', { headers })
  expect([answer.status, answer.body]).toMatchObject([400, { code: 'invalid', errors: [{ field: 'sort' }] }])
  for (const name of ['name', '-name', 'createdAt', '-lastBootStartedAt'])
    expect(answer.text).toContain(`\\"${name}\\"`)
})

test('the cursor of another order is refused by its name, and a made-up one without', async () => {
  const { nextCursor } = await pageOf(devices, { sort: '-name', limit: 1 })
  const ask = async (sort: string, cursor: unknown) => {
    const text = typeof cursor === 'string' ? cursor : Buffer.from(JSON.stringify(cursor)).toString('base64url')
    const { status, body } = await callRest(api, `/devices?sort=${sort}&cursor=${text}`, { headers })
    return { status, ...(body as { detail: string; errors: object[] }) }
  }
  expect(await ask('name', nextCursor)).toMatchObject({
    status: 400,
    detail: 'The cursor belongs to the list with sort=-name, not name. Start without a cursor.',
    errors: [{ field: 'cursor' }],
  })
  const id = tenant.deviceIds[0]
  for (const made of [['x', id, 'no such order'], [null, id, 'name'], ['x', id, 'createdAt'], ['x', 'y', 'name'], 'x'])
    for (const sort of ['name', 'createdAt'])
      expect([made, sort, (await ask(sort, made)).status]).toEqual([made, sort, 400])
})

test('a cursor of the release before, which had one order, continues in that order', async () => {
  const [first, second] = (await pageOf(devices, { limit: 2 })).items
  const cursor = Buffer.from(JSON.stringify([first?.name, first?.id])).toString('base64url')
  expect((await pageOf(devices, { limit: 1, cursor })).items[0]?.id).toBe(second?.id)
})
