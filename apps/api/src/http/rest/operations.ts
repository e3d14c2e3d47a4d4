import type { z } from 'zod'
import { isMemberPolicy, type MemberPolicy, type ProcedurePolicy, type RestOperation } from '../trpc/policy.ts'
import { appRouter } from '../trpc/router.ts'
import { type JsonSchema, jsonSchemaOf } from './json-schema.ts'

/** Where the fields of an operation's input come from. */
export interface OperationInput {
  pathNames: string[]
  /** By name: the input's fields that are not in the path. */
  query: Record<string, JsonSchema>
  /** Null for an operation without a body. */
  body: JsonSchema | null
  parameters: Record<string, JsonSchema>
  requiredNames: string[]
  takesInput: boolean
}

/** A REST operation with all that serving and describing it takes. */
export interface Operation extends RestOperation, OperationInput {
  /** The procedure's path, e.g. `device.list`; also its operationId. */
  id: string
  type: 'query' | 'mutation'
  policy: MemberPolicy
  status: 200 | 201 | 204
  output: z.ZodType
  /** The revision that a change compares: in If-Match, or the input's field, which is therefore not required. */
  revision: { schema: JsonSchema; isRequired: boolean } | null
}

interface ProcedureDefinition {
  type: 'query' | 'mutation' | 'subscription'
  meta: ProcedurePolicy
  inputs: z.ZodType[]
  output?: z.ZodType
}

interface RouterOperations {
  operations: Operation[]
  excluded: { id: string; reason: string }[]
  /** Procedures that do not declare their operation: a test refuses them. */
  missing: string[]
}

interface Router {
  _def: { procedures: object }
}

const known = new WeakMap<Router, RouterOperations>()

/** Throws for a procedure whose declaration is no valid operation. Each router is read once. */
export function readOperations(router: Router = appRouter): RouterOperations {
  const read = known.get(router) ?? operationsOf(router)
  known.set(router, read)
  return read
}

function operationsOf(router: Router): RouterOperations {
  const operations: RouterOperations['operations'] = []
  const excluded: RouterOperations['excluded'] = []
  const missing: string[] = []
  for (const [id, procedure] of Object.entries(router._def.procedures)) {
    const definition = (procedure as { _def: ProcedureDefinition })._def
    const { rest } = definition.meta
    if (!rest) missing.push(id)
    else if ('excluded' in rest) excluded.push({ id, reason: rest.excluded })
    else operations.push(operationOf(id, rest, definition))
  }
  return { operations, excluded, missing }
}

function operationOf(id: string, rest: RestOperation, { type, meta, inputs, output }: ProcedureDefinition): Operation {
  if (!isMemberPolicy(meta)) throw new Error(`${id} is not for members: it is no REST operation.`)
  if (type === 'subscription') throw new Error(`${id} is a subscription: it is no REST operation.`)
  if (!output) throw new Error(`${id} has no output schema.`)
  if (type === 'mutation' && rest.method === 'GET') throw new Error(`${id}: a GET changes nothing.`)
  if (type === 'query' && rest.method !== 'GET' && rest.method !== 'POST')
    throw new Error(`${id}: a query is a GET, or a POST where what is asked is too much for one.`)
  const parts = inputParts(id, rest, inputs[0])
  const schema = parts.body?.properties?.revision ?? parts.query.revision
  const isRequired = parts.requiredNames.includes('revision')
  return {
    ...rest,
    ...(isRequired ? withoutRequiredRevision(parts) : parts),
    revision: schema ? { schema, isRequired } : null,
    id,
    type,
    policy: meta,
    output,
    status: rest.creates === undefined ? (rest.silent ? 204 : 200) : 201,
  }
}

function withoutRequiredRevision({ requiredNames, body, ...parts }: OperationInput): OperationInput {
  const left = requiredNames.filter((name) => name !== 'revision')
  const { required: _, ...schema } = body ?? {}
  const shown = body === null ? null : { ...schema, ...(left.length > 0 ? { required: left } : {}) }
  return { ...parts, requiredNames: left, body: shown }
}

/** Throws where the path names what the input does not have. */
export function inputParts(
  id: string,
  { method, path }: Pick<RestOperation, 'method' | 'path'>,
  schema: z.ZodType | undefined,
): OperationInput {
  const input = schema ? jsonSchemaOf(schema, 'input') : {}
  const fields = input.properties ?? {}
  const pathNames = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
  for (const name of pathNames)
    if (!fields[name]) throw new Error(`${id}: its input has no field ${name}, which its path names.`)
  const left = Object.fromEntries(Object.entries(fields).filter(([name]) => !pathNames.includes(name)))
  const takesBody = method !== 'GET' && method !== 'DELETE'
  const requiredNames = (input.required ?? []).filter((name) => name in left)
  return {
    pathNames,
    requiredNames,
    takesInput: schema !== undefined,
    parameters: Object.fromEntries(pathNames.map((name) => [name, fields[name] ?? {}])),
    query: takesBody ? {} : left,
    body: takesBody && Object.keys(left).length > 0 ? bodyOf(input, left, requiredNames) : null,
  }
}

/** The rest of the input after the path has taken its fields; a misspelt field is refused, not ignored. */
function bodyOf(input: JsonSchema, properties: Record<string, JsonSchema>, required: string[]): JsonSchema {
  const { properties: _fields, required: _required, ...rest } = input
  return {
    ...rest,
    properties,
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  }
}
