import type { FastifyInstance } from 'fastify'
import { errorTable } from '../../errors/app-error.ts'
import { type DescribedFile, fileOperations } from './files/file-routes.ts'
import { type JsonSchema, withoutNull } from './json-schema.ts'
import { openApiDocument } from './openapi/document.ts'
import { type Operation, readOperations } from './operations.ts'

/** Describes the API for programs and for people; it contains nobody's data and is public. */
export async function openApiRoutes(app: FastifyInstance) {
  made ??= makeDocuments()
  for (const { url, type, text } of made)
    app.get(url, async (_request, reply) =>
      reply
        .type(`${type}; charset=utf-8`)
        .header('cache-control', 'no-cache')
        .header('content-security-policy', docsPolicy)
        .send(text),
    )
}

interface Document {
  url: string
  type: string
  text: string
}

/** The same for all servers of a process. */
let made: Document[] | undefined

function makeDocuments(): Document[] {
  return [
    { url: '/openapi.json', type: 'application/json', text: JSON.stringify(openApiDocument()) },
    { url: '/docs', type: 'text/html', text: docsPage([...readOperations().operations, ...fileOperations]) },
    { url: '/docs/problems', type: 'text/html', text: problemsPage() },
    { url: '/docs/docs.css', type: 'text/css', text: docsStyle },
  ]
}

/** For pages made here: no script runs, and the style is a file of this server. */
const docsPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"

/** Every operation on one page, without a script: what a browser's own search finds. */
function docsPage(operations: (Operation | DescribedFile)[]): string {
  const byTag = Map.groupBy(operations, ({ id }) => id.split('.')[0] ?? id)
  const contents = [...byTag.keys()].map((tag) => `<li><a href="#${tag}">${escaped(tag)}</a></li>`)
  const sections = [...byTag].map(
    ([tag, of]) => `<section><h2 id="${tag}">${escaped(tag)}</h2>${of.map(operationHtml).join('')}</section>`,
  )
  return page(
    'API',
    `<p>Every feature of the dashboard. Sign in with an API key: <code>Authorization: Bearer bfk_…</code>. Machine-readable: <a href="/api/openapi.json">OpenAPI 3.1</a>. Errors carry a stable <a href="/api/docs/problems">code</a>.</p> <p>Lists are paged: pass <code>nextCursor</code> as <code>cursor</code> until it is null. A POST with an <code>Idempotency-Key</code> is executed once and gives the same answer for 24 hours.</p> <nav aria-label="Contents"><ul>${contents.join('')}</ul></nav>${sections.join('')}`,
  )
}

/** The target of `type` in a problem. */
function problemsPage(): string {
  const rows = Object.entries(errorTable).map(
    ([code, { status, title }]) =>
      `<tr id="${code}"><td><code>${code}</code></td><td>${status}</td><td>${escaped(title)}</td></tr>`,
  )
  return page(
    'Problems',
    `<p>Errors are <code>application/problem+json</code> (RFC 9457). Use <code>code</code> in programs: it is stable. The texts are for people. <a href="/api/docs">All operations</a></p> <table><thead><tr><th scope="col">Code</th><th scope="col">Status</th><th scope="col">Meaning</th></tr></thead> <tbody>${rows.join('')}</tbody></table>`,
  )
}

function operationHtml(operation: Operation | DescribedFile): string {
  const { id, path, summary, description, policy, body, parameters, query } = operation
  const { method, status } = 'method' in operation ? operation : { method: 'GET', status: 200 }
  const required = new Set(operation.requiredNames)
  const fields = [
    ...Object.entries(parameters).map(([name, schema]) => fieldRow('path', name, schema, true)),
    ...Object.entries(query).map(([name, schema]) =>
      fieldRow('query', name, withoutNull(schema), required.has(name) && !('default' in schema)),
    ),
    ...Object.entries(body?.properties ?? {}).map(([name, schema]) =>
      fieldRow('body', name, schema, required.has(name)),
    ),
  ]
  return `<article id="${id}"><h3><code class="method">${method}</code> <code>/api/v1${escaped(path)}</code></h3>
<p>${escaped(summary)}.${description ? ` ${escaped(description)}` : ''}
Takes the permission <code>${policy.permission}</code>; answers ${status}.</p>${
    fields.length > 0
      ? `<table><thead><tr><th scope="col">Name</th><th scope="col">In</th><th scope="col">What</th></tr></thead>
<tbody>${fields.join('')}</tbody></table>`
      : ''
  }</article>`
}

function fieldRow(place: string, name: string, schema: JsonSchema, isRequired: boolean): string {
  return `<tr><td><code>${escaped(name)}</code>${isRequired ? ' <em>required</em>' : ''}</td><td>${place}</td>
<td>${escaped(typeText(schema))}</td></tr>`
}

const depthMax = 3

/** A schema in words, short enough for a table. */
function typeText(schema: JsonSchema, depth = 0): string {
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(', ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  const alternatives = schema.anyOf ?? (schema.oneOf as JsonSchema[] | undefined)
  if (alternatives) return alternatives.map((one) => typeText(one, depth)).join(' or ')
  if (schema.type === 'array') return `list of ${typeText(schema.items ?? {}, depth)}`
  if (schema.type === 'object') {
    if (depth >= depthMax) return 'object'
    const members = Object.entries(schema.properties ?? {})
    return `{ ${members.map(([name, one]) => `${name}: ${typeText(one, depth + 1)}`).join('; ')} }`
  }
  return [schema.type ?? 'anything', schema.format, boundsText(schema)].filter(Boolean).join(', ')
}

function boundsText({ minimum, maximum, maxLength, default: usual }: JsonSchema): string {
  const bounds = [
    typeof minimum === 'number' && minimum > Number.MIN_SAFE_INTEGER ? `from ${minimum}` : '',
    typeof maximum === 'number' && maximum < Number.MAX_SAFE_INTEGER ? `to ${maximum}` : '',
    maxLength === undefined ? '' : `at most ${String(maxLength)} characters`,
    usual === undefined ? '' : `else ${JSON.stringify(usual)}`,
  ]
  return bounds.filter(Boolean).join(' ')
}

function page(title: string, body: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title} · Bootfarm</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/api/docs/docs.css"></head>
<body><main><p><a href="/">Bootfarm</a></p><h1>${title}</h1>${body}</main></body></html>`
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}

const docsStyle = `:root { color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif }
body { margin: 0 } main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem }
h1 { font-size: 1.5rem } h2 { margin-top: 3rem; border-bottom: 1px solid #8886; padding-bottom: .25rem }
article { margin: 1.5rem 0; padding: .25rem 1rem 1rem; border: 1px solid #8884; border-radius: .5rem; overflow-x: auto }
h3 { font-size: 1rem; overflow-wrap: anywhere } code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere }
.method { font-weight: 700 } table { border-collapse: collapse; width: 100% } em { color: light-dark(#a33, #f99); font-size: .85em }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-top: 1px solid #8883 } td:nth-child(2) { color: light-dark(#555, #aaa) }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; list-style: none } a { color: light-dark(#0a58ca, #8ab4ff) }
tr:target { background: light-dark(#fff3c4, #4a3c00) }`
