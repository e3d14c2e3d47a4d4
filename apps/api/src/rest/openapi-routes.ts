import type { FastifyInstance } from 'fastify'
import { openApiDocument } from './openapi/document.ts'

/** The document of this release; it says nothing of anybody's data and is for everybody. */
export async function openApiRoutes(app: FastifyInstance) {
  const document = JSON.stringify(openApiDocument())
  app.get('/openapi.json', async (_request, reply) =>
    reply.type('application/json; charset=utf-8').header('cache-control', 'no-cache').send(document),
  )
}
