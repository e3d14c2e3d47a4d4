import { expect, test } from 'vitest'
import type { z } from 'zod'
import { appRouter } from '../../trpc/router.ts'
import type { JsonSchema } from '../json-schema.ts'
import { readOperations } from '../operations.ts'
import { inputOf } from '../read-input.ts'
import { described } from './describe.ts'
import { openApiDocument } from './document.ts'

interface Media {
  schema?: JsonSchema
  example?: unknown
}
interface Parameter {
  name: string
  in: string
  required: boolean
  description?: string
  schema: JsonSchema
  example?: unknown
}
interface Described {
  operationId: string
  summary?: string
  description?: string
  parameters: Parameter[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { description?: string; headers?: object; content?: Record<string, Media> }>
}

const document = openApiDocument() as {
  paths: Record<string, Record<string, Described>>
  components: { schemas: Record<string, JsonSchema> }
}
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods))

/** Fields without a description, however deep. */
function undescribed(schema: unknown, where: string): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const fields = (schema as JsonSchema).properties
  return Object.entries(schema).flatMap(([key, value]) =>
    key === 'properties' && fields === value
      ? Object.entries(fields ?? {}).flatMap(([name, field]) => [
          ...(field.description ? [] : [`${where}.${name}`]),
          ...undescribed(field, `${where}.${name}`),
        ])
      : key === 'example'
        ? []
        : undescribed(value, where),
  )
}

test('every operation, parameter and field is described', () => {
  const missing = operations.flatMap((one) => [
    ...(one.summary && one.description ? [] : [one.operationId]),
    ...one.parameters.filter(({ description }) => !description).map(({ name }) => `${one.operationId}?${name}`),
    ...undescribed(one.requestBody, one.operationId),
  ])
  expect(missing).toEqual([])
  expect(undescribed({ schemas: document.components.schemas }, 'components')).toEqual([])
})

test('a field that nothing describes has no document', () => {
  const schema = { type: 'object', properties: { colourOfTheCase: { type: 'string' } } }
  expect(() => described(schema)).toThrow('Nothing describes the field colourOfTheCase')
  expect(undescribed(schema, 'x')).toEqual(['x.colourOfTheCase'])
})

test('schemas are named after their nouns', () => {
  const names = Object.keys(document.components.schemas)
  expect(names).toEqual(expect.arrayContaining(['Device', 'DevicePage', 'DeviceSummary', 'Vdisk', 'AuditEntry']))
  expect(names.filter((name) => !/^[A-Z][A-Za-z]+$/.test(name) || /(Output|Input|View|Detail)$/.test(name))).toEqual([])
})

function partsOf(parameters: Parameter[], body: unknown) {
  const texts = (place: string) =>
    Object.fromEntries(
      parameters
        .filter((one) => one.in === place)
        .map(({ name, example }) => [name, Array.isArray(example) ? example.map(String) : String(example)]),
    )
  return { params: texts('path') as Record<string, string>, query: texts('query'), body }
}

interface Definition {
  inputs: z.ZodType[]
}
const procedures = appRouter._def.procedures as unknown as Record<string, { _def: Definition }>

test.each(readOperations().operations)('$id has examples that it takes and gives', (operation) => {
  const { id, path, method, status, output } = operation
  const written = document.paths[path]?.[method.toLowerCase()] as Described
  const body = written.requestBody?.content['application/json']
  if (operation.body) expect(body).toHaveProperty('example')
  const [input] = procedures[id]?._def.inputs ?? []
  if (input) {
    // A revision may come as If-Match instead, which the procedure does not see.
    const isNeeded = ({ required, name }: Parameter) => required || name === 'revision'
    // Optional parameters may exclude each other: each is tried alone.
    const optional = written.parameters.filter(
      (one) => one.in === 'query' && !isNeeded(one) && one.example !== undefined,
    )
    for (const added of [[], ...optional.map((one) => [one])]) {
      const given = [...written.parameters.filter(isNeeded), ...added]
      expect(input.safeParse(inputOf(operation, partsOf(given, body?.example))).error?.issues).toBeUndefined()
    }
  }
  if (status === 204) return
  const answer = written.responses[status]?.content?.['application/json']
  expect(answer).toHaveProperty('example')
  expect(output.safeParse(answer?.example).error?.issues).toBeUndefined()
})

const paths = Object.keys(document.paths)
const componentOf = (schema: JsonSchema | undefined) =>
  typeof schema?.$ref === 'string'
    ? (document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {})
    : (schema ?? {})

function answerOf(path: string, method: string, status: number): JsonSchema {
  return componentOf(document.paths[path]?.[method]?.responses[status]?.content?.['application/json']?.schema)
}

const hasId = (schema: JsonSchema) => schema.properties?.id !== undefined

/** Where objects of a list are read whose own path is not below the list's. */
const elsewhere: Record<string, string> = { '/schedules/{scheduleId}/runs': '/schedule-runs/{runId}' }

/** The path of one object of a collection: the same, and an id. */
function itemPathOf(path: string): string | undefined {
  if (elsewhere[path]) return elsewhere[path]
  return paths.find((other) => other.startsWith(`${path}/{`) && /^[^/]+$/.test(other.slice(path.length + 1)))
}

const isRead = (path: string | undefined) => path !== undefined && document.paths[path]?.get !== undefined

test('every list of objects with ids has a GET by id', () => {
  const lists = paths.filter((path) => {
    const { items } = answerOf(path, 'get', 200).properties ?? {}
    return items !== undefined && hasId(componentOf(items.items))
  })
  expect(lists).toEqual(expect.arrayContaining(['/farms', '/devices', '/trash', '/webhooks/{webhookId}/deliveries']))
  expect(lists.filter((path) => !isRead(itemPathOf(path)))).toEqual([])
})

test('everything that is made and has an id can be read by it', () => {
  const made = paths.filter((path) => hasId(answerOf(path, 'post', 201)))
  expect(made).toEqual(expect.arrayContaining(['/farms', '/api-keys', '/invitations', '/vdisks/{vdiskId}/versions']))
  const unread = made.filter((path) => {
    const hasLocation = document.paths[path]?.post?.responses[201]?.headers !== undefined
    return !hasLocation && !isRead(itemPathOf(path))
  })
  expect(unread).toEqual([])
})

test('what is changed or deleted by its own path is read there, too', () => {
  const changed = paths.filter((path) => {
    const { patch, delete: remove } = document.paths[path] ?? {}
    return path.endsWith('}') && (patch ?? remove) !== undefined
  })
  expect(changed.filter((path) => !isRead(path))).toEqual(['/members/{userId}/grants/{grantId}'])
})
