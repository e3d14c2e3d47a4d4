import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bootReports, bootWith, EdgeClient } from '../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { callProcedure, mutate, query } from '../../test/test-client.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../test/test-tenant.ts'
import type { DeviceDetail, DeviceSummary } from './schema.ts'

interface Page<T> {
  items: T[]
  nextCursor: string | null
}

let api: TestApi
let tenant: TestTenant
let cookie: string

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  cookie = await signInAs(api, tenant.organizationId, 'owner')
  const edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
  const [first = '', second = ''] = tenant.macs
  const silent = { kind: 'silent' as const, phase: 'loader' as const }
  await edge.reports(
    1,
    bootReports(1, [
      bootWith({ id: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701', mac: first }),
      bootWith({ id: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c702', mac: second, outcome: silent }),
    ]),
  )
})
afterAll(() => api.close())

const namesOf = async (path: string, input: object = {}) =>
  (await query<Page<{ name: string }>>(api, cookie, path, input)).items.map(({ name }) => name)

describe('device.list', () => {
  test('goes on after the cursor', async () => {
    const first = await query<Page<DeviceSummary>>(api, cookie, 'device.list', { limit: 4 })
    const second = await query<Page<DeviceSummary>>(api, cookie, 'device.list', {
      limit: 4,
      cursor: first.nextCursor,
    })
    const names = [...first.items, ...second.items].map(({ name }) => name)
    expect(names).toEqual(['pc-01', 'pc-02', 'pc-03', 'pc-04', 'pc-05', 'pc-06'])
    expect(second.nextCursor).toBeNull()
  })

  test.each([
    [{ search: 'PC-03' }, ['pc-03']],
    [{ search: '00-00-06' }, ['pc-06']],
    [{ search: '%' }, []],
    [{ search: '_' }, []],
    [{ lastOutcome: 'ready' }, ['pc-01']],
    [{ lastOutcome: 'silent' }, ['pc-02']],
    [{ lastOutcome: 'booting' }, []],
    [{ lastOutcome: 'never', search: 'pc' }, ['pc-03', 'pc-04', 'pc-05', 'pc-06']],
  ])('filters by %j', async (input, names) => {
    expect(await namesOf('device.list', input)).toEqual(names)
  })
})

describe('device.bootAgain', () => {
  const deviceId = () => tenant.deviceIds[2] ?? ''
  const again = (id: string) =>
    callProcedure(api, { path: 'device.bootAgain', type: 'mutation', input: { deviceId: id }, cookie })

  test('is shown at the device until its minute is over', async () => {
    const powerOn = async () => (await query<DeviceDetail>(api, cookie, 'device.get', { deviceId: deviceId() })).powerOn
    const { powerOnId } = await mutate<{ powerOnId: string }>(api, cookie, 'device.bootAgain', {
      deviceId: deviceId(),
    })
    expect(await powerOn()).toMatchObject({ id: powerOnId })
    api.clock.advance(60_000)
    expect(await powerOn()).toBeNull()
  })

  test('is refused for a disabled device', async () => {
    const id = tenant.deviceIds[3] ?? ''
    await api.db.device.updateMany({ where: { id }, data: { enabled: false } })
    expect(await again(id)).toMatchObject({ status: 409, code: 'conflict' })
  })

  test('is refused where no edge could do it', async () => {
    const lonely = await createTenant(api, 'lonely')
    const owner = await signInAs(api, lonely.organizationId, 'owner')
    const input = { deviceId: lonely.deviceIds[0] }
    const answer = await callProcedure(api, {
      path: 'device.bootAgain',
      type: 'mutation',
      input,
      cookie: owner,
    })
    expect(answer).toMatchObject({ status: 409, code: 'conflict' })
  })

  test('is refused when it was asked for too often', async () => {
    const id = tenant.deviceIds[4] ?? ''
    const answers = []
    for (let count = 0; count < 11; count++) answers.push((await again(id)).status)
    expect(answers.filter((status) => status === 409)).toHaveLength(1)
  })
})
