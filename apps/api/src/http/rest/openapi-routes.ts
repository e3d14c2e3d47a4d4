import type { FastifyInstance } from 'fastify'
import { docsPage, docsPolicy, docsStyle, problemsPage } from './docs-page.ts'
import { openApiDocument } from './openapi/document.ts'
import { readOperations } from './operations.ts'

/** What the API can do, for programs and for people; it says nothing of anybody's data and is for everybody. */
export async function openApiRoutes(app: FastifyInstance) {
  const documents = [
    { url: '/openapi.json', type: 'application/json', text: JSON.stringify(openApiDocument()) },
    { url: '/docs', type: 'text/html', text: docsPage(readOperations().operations) },
    { url: '/docs/problems', type: 'text/html', text: problemsPage() },
    { url: '/docs/docs.css', type: 'text/css', text: docsStyle },
  ]
  for (const { url, type, text } of documents)
    app.get(url, async (_request, reply) =>
      reply
        .type(`${type}; charset=utf-8`)
        .header('cache-control', 'no-cache')
        .header('content-security-policy', docsPolicy)
        .send(text),
    )
}
