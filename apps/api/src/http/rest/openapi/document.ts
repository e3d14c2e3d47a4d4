import { type AppErrorCode, errorTable } from '../../../errors/app-error.ts'
import { type DescribedFile, fileOperations } from '../files/file-routes.ts'
import { type JsonSchema, namedSchemasOf, refTo, withoutNull } from '../json-schema.ts'
import { type Operation, type OperationInput, readOperations } from '../operations.ts'
import { hasEtag } from '../preconditions.ts'
import { described, describedFields } from './describe.ts'
import { exampleOf } from './example.ts'
import { tagTexts } from './tag-texts.ts'

const description = `Every capability of the Bootfarm dashboard, by the same code.

Sign in with an API key: \`Authorization: Bearer bfk_…\`. Lists are read page by page: pass \`nextCursor\` of an answer as
\`cursor\` until it is null. Times are UTC (RFC 3339), sizes bytes, durations what their name says. Texts that devices say of
themselves are untrusted. What went wrong is \`application/problem+json\`; its \`code\` is stable.

Live updates are server-sent events and no operation of this document; a webhook says more with less.`

/** Version of the operations, not of the release: grows when one changes in a way that clients notice. */
const apiVersion = '1.0.0'

type Json = Record<string, unknown>

/** OpenAPI 3.1 of /api/v1, made from the router once: service and description cannot differ. */
export function openApiDocument(): Json {
  const { operations } = readOperations()
  const schemas = new NamedSchemas()
  const paths: Record<string, Json> = {}
  for (const operation of operations) {
    paths[operation.path] ??= {}
    Object.assign(paths[operation.path] ?? {}, {
      [operation.method.toLowerCase()]: operationObject(operation, schemas),
    })
  }
  for (const file of fileOperations) paths[file.path] = { get: fileObject(file) }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Bootfarm',
      version: apiVersion,
      description,
      contact: { name: 'The operator of this installation' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/api/v1' }],
    security: [{ apiKey: [] }, { session: [] }],
    tags: [...new Set([...operations, ...fileOperations].map(tagOf))].map(tagObject),
    paths,
    components: {
      schemas: { Problem: described(problemSchema), ...schemas.all() },
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `bfk_…`.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'better-auth.session_token',
          description: "The dashboard's own session.",
        },
      },
    },
  }
}

function tagOf({ id }: { id: string }): string {
  return id.split('.')[0] ?? id
}

function tagObject(name: string): Json {
  const description = tagTexts[name]
  if (!description) throw new Error(`Nothing describes the tag ${name}. Add it to tag-texts.ts.`)
  return { name, description }
}

function operationObject(operation: Operation, schemas: NamedSchemas): Json {
  const { id, summary, policy } = operation
  return {
    operationId: id,
    tags: [tagOf(operation)],
    summary,
    description: [operation.description, `Takes the permission \`${policy.permission}\`.`].filter(Boolean).join('\n\n'),
    parameters: parametersOf(operation),
    ...(operation.body
      ? {
          requestBody: {
            required: operation.requiredNames.length > 0,
            content: { 'application/json': { schema: described(operation.body), example: exampleOf(operation.body) } },
          },
        }
      : {}),
    responses: responsesOf(operation, schemas),
  }
}

/** A file's content has no schema: its media type says what it is. */
function fileObject(file: DescribedFile): Json {
  const { id, summary, description, policy, types } = file
  const namesObject = file.pathNames.length > 0 || typeof policy.place === 'object'
  const problems = [...anyOperation, ...(namesObject ? (['not_found'] as const) : [])]
  return {
    operationId: id,
    tags: [tagOf(file)],
    summary,
    description: `${description}\n\nTakes the permission \`${policy.permission}\`.`,
    parameters: inputParameters(file),
    responses: {
      200: { description: 'The file.', content: Object.fromEntries(types.map((type) => [type, {}])) },
      ...problemsByStatus(problems),
    },
  }
}

function parametersOf(operation: Operation): Json[] {
  return [
    ...inputParameters(operation),
    ...(operation.method === 'POST' && operation.type === 'mutation' ? [idempotencyKey] : []),
    ...(operation.revision && operation.method !== 'GET' ? [ifMatch] : []),
    ...(hasEtag(operation) ? [ifNoneMatch] : []),
  ]
}

function inputParameters(operation: OperationInput): Json[] {
  return [
    ...parameterObjects('path', operation.parameters, () => true),
    ...parameterObjects(
      'query',
      operation.query,
      (name, schema) => operation.requiredNames.includes(name) && !('default' in schema),
    ),
  ]
}

function parameterObjects(
  place: 'path' | 'query',
  fields: Record<string, JsonSchema>,
  isRequired: (name: string, schema: JsonSchema) => boolean,
): Json[] {
  return Object.entries(describedFields(fields)).map(([name, field]) => {
    const { description, ...schema } = withoutNull(field)
    return {
      name,
      in: place,
      required: isRequired(name, schema),
      description,
      schema,
      // A cursor cannot be made up, and the first page has none.
      ...(name === 'cursor' ? {} : { example: exampleOf(schema, {}, name) }),
    }
  })
}

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'The request is executed once and gives the same answer for 24 hours, however often it is sent with this key.',
  schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
  example: '8e0f3f0c-4b1c-4d5e-9a51-0f6f3d1c2b7a',
}

const ifMatch = {
  name: 'If-Match',
  in: 'header',
  required: false,
  description: 'The ETag of the object that the caller has seen, or only its revision. In place of `revision`.',
  schema: { type: 'string' },
  example: '"7"',
}

const ifNoneMatch = {
  name: 'If-None-Match',
  in: 'header',
  required: false,
  description: 'The ETag of an earlier answer: answers 304 if nothing has changed.',
  schema: { type: 'string' },
  example: '"7.4kq3vXrBvX0mF2n1c9Zt7g"',
}

const etagHeader = {
  description: 'The revision, if the object has one, and a hash of the answer.',
  schema: { type: 'string' },
  example: '"7.4kq3vXrBvX0mF2n1c9Zt7g"',
}

function responsesOf(operation: Operation, schemas: NamedSchemas): Json {
  return {
    [operation.status]: successOf(operation, schemas),
    ...(hasEtag(operation) ? { 304: { description: 'Nothing has changed since that ETag.' } } : {}),
    ...problemsByStatus(codesOf(operation)),
  }
}

function problemsByStatus(codes: AppErrorCode[]): Json {
  const byStatus = Map.groupBy(codes, (code) => errorTable[code].status)
  return Object.fromEntries([...byStatus].map(([status, some]) => [status, problemResponse(some)]))
}

function successOf(operation: Operation, schemas: NamedSchemas): Json {
  const { status, creates, output } = operation
  if (status === 204) return { description: 'Done.' }
  return {
    description: status === 201 ? 'Created.' : 'The requested data.',
    ...(hasEtag(operation) ? { headers: { etag: etagHeader } } : {}),
    ...(creates
      ? {
          headers: {
            location: {
              description: 'URL of the created object.',
              schema: { type: 'string', format: 'uri-reference' },
              example: '/api/v1/devices/0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701',
            },
          },
        }
      : {}),
    content: { 'application/json': schemas.contentOf(output) },
  }
}

/** The components: outputs and the named objects in them, so that generated clients have one type for each. */
class NamedSchemas {
  readonly #schemas: Record<string, JsonSchema> = {}

  /** The content of an answer, whose schema becomes a component. */
  contentOf(output: Operation['output']): Json {
    const { schema, schemas } = namedSchemasOf(output)
    for (const [name, one] of Object.entries(schemas)) this.#schemas[name] ??= described(one)
    return { schema, example: exampleOf(schema, this.#schemas) }
  }

  all(): Record<string, JsonSchema> {
    return this.#schemas
  }
}

/** Answers that every operation may give. */
const anyOperation: AppErrorCode[] = [
  'invalid',
  'unauthenticated',
  'forbidden',
  'rate_limited',
  'internal',
  'unavailable',
]

const changes: AppErrorCode[] = [
  'invalid_body',
  'foreign_origin',
  'organization_suspended',
  'quota_exceeded',
  'conflict',
  'too_large',
  'unsupported_media_type',
]

/** Returns the codes that an operation may answer, derived from its shape. */
function codesOf({ pathNames, policy, method, type, query, revision, codes = [] }: Operation): AppErrorCode[] {
  const names = 'cursor' in query ? pathNames.length : Object.keys(query).length + pathNames.length
  const namesObject = names > 0 || (typeof policy.place !== 'string' && policy.place !== undefined)
  return [
    ...anyOperation,
    ...(namesObject || method !== 'GET' ? (['not_found'] as const) : []),
    ...(method === 'GET' ? [] : changes),
    ...(method !== 'GET' && revision ? (['precondition_failed', 'precondition_required'] as const) : []),
    ...(method === 'POST' && type === 'mutation' ? (['idempotency_key_reused'] as const) : []),
    ...codes,
  ]
}

function problemResponse(codes: AppErrorCode[]): Json {
  return {
    description: codes.map((code) => `\`${code}\`: ${errorTable[code].title}`).join(' '),
    ...(codes.includes('rate_limited') ? { headers: { 'retry-after': retryAfter } } : {}),
    content: {
      'application/problem+json': { schema: refTo('Problem'), example: problemExample(codes[0] ?? 'invalid') },
    },
  }
}

function problemExample(code: AppErrorCode): Json {
  const { status, title } = errorTable[code]
  const requestId = '5a2b1c5e-8f0d-4f0b-9a51-0f6f3d1c2b7a'
  return { type: `/api/docs/problems#${code}`, title, status, code, detail: title, requestId }
}

const retryAfter = {
  description:
    'Seconds to wait. A key exceeded its requests a minute, a person the calls of a person, or too many requests of the organization wait for their turn.',
  schema: { type: 'integer', minimum: 0 },
}

const text = { type: 'string' }

const problemSchema: JsonSchema = {
  type: 'object',
  description: 'RFC 9457. `code` is stable; the texts are for people.',
  required: ['type', 'title', 'status', 'code', 'detail', 'requestId'],
  properties: {
    type: { ...text, format: 'uri-reference', description: 'Documentation of the code.' },
    title: text,
    status: { type: 'integer', minimum: 400, maximum: 599 },
    code: { type: 'string', enum: Object.keys(errorTable) },
    detail: text,
    errors: {
      type: 'array',
      description: 'Field errors.',
      items: {
        type: 'object',
        required: ['in', 'field', 'message'],
        properties: {
          in: { type: 'string', enum: ['path', 'query', 'body', 'header', 'input'] },
          field: text,
          message: text,
        },
      },
    },
    revision: { anyOf: [{ type: 'integer' }, text], description: 'The current revision, if another one was named.' },
    requestId: { ...text, description: 'Identifies the request in the API’s log.' },
  },
}
