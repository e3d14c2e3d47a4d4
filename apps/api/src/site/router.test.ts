import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EdgeClient } from '../../test/edge-client.ts'
import { startTestApi, type TestApi } from '../../test/test-api.ts'
import { mutate, query } from '../../test/test-client.ts'
import { createTenant, makeJoinToken, signInAs, type TestTenant } from '../../test/test-tenant.ts'

let api: TestApi
let tenant: TestTenant
let cookie: string
let edge: EdgeClient

beforeAll(async () => {
  api = await startTestApi()
  tenant = await createTenant(api, 'own')
  cookie = await signInAs(api, tenant.organizationId, 'owner')
  edge = await EdgeClient.enrolled(api.url, await makeJoinToken(api, tenant))
})
afterAll(() => api.close())

const namesOf = async (path: string, input: object = {}) =>
  (await query<{ items: { name: string }[] }>(api, cookie, path, input)).items.map(({ name }) => name)

describe('lists', () => {
  test('show what there is', async () => {
    expect(await namesOf('farm.list')).toEqual(['Farm of own'])
    expect(await namesOf('site.list')).toEqual(['Site of own'])
    expect(await namesOf('collection.list', { siteId: tenant.siteId })).toEqual(['Lab'])
    expect(await namesOf('vdisk.list', { farmId: tenant.farmId })).toEqual(['Linux'])
    expect(await namesOf('edge.list', { siteId: tenant.siteId })).toEqual(['edge-1'])
  })
})

describe('one thing', () => {
  test('a site has its edges and collections', async () => {
    expect(await query(api, cookie, 'site.get', { siteId: tenant.siteId })).toMatchObject({
      name: 'Site of own',
      edgeCount: 1,
      deviceCount: 6,
      edges: [{ id: edge.edgeId }],
      collections: [{ id: tenant.collectionId, vdiskName: 'Linux', deviceCount: 6 }],
    })
  })

  test('a vDisk has its versions and who boots it', async () => {
    expect(await query(api, cookie, 'vdisk.get', { vdiskId: tenant.vdiskId })).toMatchObject({
      farmName: 'Farm of own',
      versions: [{ id: tenant.versionId, number: 1, sizeBytes: 419_430_400 }],
      collections: [{ name: 'Lab', deviceCount: 6 }],
    })
  })

  test('a join token that the dashboard made enrols an edge', async () => {
    const { token } = await mutate<{ token: string }>(api, cookie, 'edge.createJoinToken', {
      siteId: tenant.siteId,
    })
    expect((await new EdgeClient(api.url).enrol(token)).status).toBe(201)
    expect(JSON.stringify(await api.db.joinToken.findMany())).not.toContain(token)
  })

  test('a join token ends with the membership of the person who made it', async () => {
    const admin = await signInAs(api, tenant.organizationId, 'admin')
    const { user } = await query<{ user: { id: string } }>(api, admin, 'session.me')
    const { token } = await mutate<{ token: string }>(api, admin, 'edge.createJoinToken', { siteId: tenant.siteId })
    const owner = await signInAs(api, tenant.organizationId, 'owner')
    await mutate(api, owner, 'member.remove', { userId: user.id })
    expect((await new EdgeClient(api.url).enrol(token)).body).toMatchObject({ code: 'join_token_expired' })
  })
})
