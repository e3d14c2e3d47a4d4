import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { problemHandler } from './edge-routes.ts'
import { inFlightLimit } from './in-flight-limit.ts'

test('what comes while there is no room is refused with when to come again, and room that is free again is used', async () => {
  const app = Fastify()
  app.setErrorHandler(problemHandler)
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: full, resolve: fill } = Promise.withResolvers<void>()
  let begun = 0
  app.post('/', { onRequest: inFlightLimit(2) }, async () => {
    begun += 1
    if (begun === 2) fill()
    await released
    return 'taken'
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  try {
    const post = () => fetch(url, { method: 'POST' })
    const taken = [post(), post()]
    await full
    const refused = await post()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
    expect(await refused.json()).toMatchObject({ code: 'unavailable' })
    expect(begun).toBe(2)
    release()
    expect(await Promise.all(taken.map(async (answer) => (await answer).status))).toEqual([200, 200])
    expect((await post()).status).toBe(200)
  } finally {
    await app.close()
  }
})
