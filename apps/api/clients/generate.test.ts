import { afterAll, beforeAll, expect, test } from 'vitest'
import { newApiKeySecret } from '../src/api-key/api-key-secret.ts'
import { startTestApi, type TestApi } from '../test/test-api.ts'
import { createPerson, createTenant } from '../test/test-tenant.ts'
import { makePythonClient, makeTypeScriptClient, takeTour } from './generate.ts'
import { writeDocument } from './tools.ts'

const document = writeDocument()
let api: TestApi
let env: Record<string, string>

beforeAll(async () => {
  api = await startTestApi()
  const { organizationId, siteId, collectionId } = await createTenant(api, 'clients')
  const { email } = await createPerson(api, organizationId, 'admin')
  const { id: createdByUserId } = await api.db.user.findUniqueOrThrow({ where: { email }, select: { id: true } })
  const { secret, ...key } = newApiKeySecret()
  await api.db.apiKey.create({
    data: { ...key, organizationId, name: 'tour', role: 'admin', createdByUserId, createdAt: api.clock.now },
  })
  await api.db.device.createMany({
    data: [1, 2, 3].map((number) => ({
      organizationId,
      siteId,
      collectionId,
      name: `one-${number}`,
      mac: `02:bf:04:00:00:0${number}`,
    })),
  })
  env = { BOOTFARM_URL: api.url, BOOTFARM_KEY: secret, BOOTFARM_COLLECTION: collectionId }
})
afterAll(async () => {
  document.remove()
  await api.close()
})

test('a generated TypeScript client compiles and passes the tour', async () => {
  expect(await makeTypeScriptClient(document.folder, document.file)).toEqual({ code: 0, output: '' })
  expect(await takeTour('typescript', document.folder, env)).toMatchObject({
    code: 0,
    output: expect.stringMatching(/seen \d+ devices/),
  })
})

test('a generated Python client leaves nothing out and passes the tour', async () => {
  expect(await makePythonClient(document.folder, document.file)).toMatchObject({ code: 0 })
  expect(await takeTour('python', document.folder, env)).toMatchObject({
    code: 0,
    output: expect.stringMatching(/seen \d+ devices/),
  })
})
