import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { toAppError } from '../errors/to-app-error.ts'
import { Places } from './places.ts'

test('a sender without room is told when to come again, the others have theirs, and a free place is used', async () => {
  const app = Fastify()
  app.setErrorHandler((thrown, _request, reply) => reply.code(503).send({ code: toAppError(thrown).code }))
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: full, resolve: fill } = Promise.withResolvers<void>()
  const places = new Places()
  let begun = 0
  const onRequest = async (request: { url: string }, reply: Parameters<Places['hold']>[0]) =>
    places.hold(reply, [
      { key: request.url, max: 2 },
      { key: 'all', max: 3 },
    ])
  app.post('/*', { onRequest }, async () => {
    begun += 1
    if (begun === 2) fill()
    await released
    return 'taken'
  })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  try {
    const post = (path: string) => fetch(new URL(path, url), { method: 'POST' })
    const taken = [post('/a'), post('/a')]
    await full
    const refused = await post('/a')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2'])
    expect(await refused.json()).toMatchObject({ code: 'unavailable' })
    expect(begun).toBe(2)
    const other = post('/b')
    await expect.poll(() => begun).toBe(3)
    // All places are taken: nobody is counted twice for a refusal.
    expect((await post('/c')).status).toBe(503)
    release()
    expect(await Promise.all([...taken, other].map(async (answer) => (await answer).status))).toEqual([200, 200, 200])
    for (const path of ['/a', '/b', '/c']) expect((await post(path)).status).toBe(200)
  } finally {
    await app.close()
  }
})
