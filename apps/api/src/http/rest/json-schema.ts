import { z } from 'zod'

/** The part of JSON Schema 2020-12, the dialect of OpenAPI 3.1, that this folder reads. */
export interface JsonSchema {
  type?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  additionalProperties?: boolean | JsonSchema
  enum?: unknown[]
  const?: unknown
  [keyword: string]: unknown
}

/** Throws for types that JSON cannot express, e.g. a bigint. */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: explain })
  if (JSON.stringify(rest).includes('"#/$defs/'))
    throw new Error('a schema that contains itself, or a named one, cannot be part of an input yet')
  return rest as JsonSchema
}

const componentPrefix = '#/components/schemas/'

/**
 * An output that has a name, `.meta({ id })`, or is such a one or null; and the schemas of the named objects in it, by
 * name, which refer to each other as components of an OpenAPI document. Throws for an output without a name.
 */
export function namedSchemasOf(output: z.ZodType): { schema: JsonSchema; schemas: Record<string, JsonSchema> } {
  const { $schema: _, ...json } = z.toJSONSchema(output, { unrepresentable: 'any', override: explain })
  const text = JSON.stringify(json).replaceAll('"#/$defs/', `"${componentPrefix}`)
  const { $defs = {}, ...schema } = JSON.parse(text) as JsonSchema & { $defs?: Record<string, JsonSchema> }
  if (schema.type === 'object') throw new Error('An output has no name. Add .meta({ id }) to its schema.')
  return { schema, schemas: $defs }
}

export function refTo(name: string): { $ref: string } {
  return { $ref: `${componentPrefix}${name}` }
}

/** The schema itself, or the component that it refers to. */
export function resolved(schema: JsonSchema, schemas: Record<string, JsonSchema>): JsonSchema {
  const { $ref } = schema
  if (typeof $ref !== 'string') return schema
  return schemas[$ref.slice(componentPrefix.length)] ?? {}
}

/**
 * A text that is brought into its usual form comes out as it went in: of the same kind. A format says what the long
 * pattern of an id or of a time says.
 */
function explain({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodTypes
  jsonSchema: z.core.JSONSchema.BaseSchema
}): void {
  if (jsonSchema.format === 'uuid' || jsonSchema.format === 'date-time') delete jsonSchema.pattern
  const { def } = zodSchema._zod
  if (def.type === 'record') nameKeys(jsonSchema)
  if (def.type === 'pipe' && isTransform(def.out) && Object.keys(jsonSchema).length === 0)
    Object.assign(jsonSchema, jsonSchemaOf(def.in as z.ZodType, 'output'))
  if (['bigint', 'date', 'map', 'set', 'symbol', 'undefined', 'custom'].includes(def.type))
    throw new Error(`JSON has no ${def.type}: the API takes and gives what JSON can say`)
}

/** A record that has each of its keys becomes an object with these fields, which every generator understands. */
function nameKeys(jsonSchema: z.core.JSONSchema.BaseSchema): void {
  const { propertyNames, required, additionalProperties } = jsonSchema
  if (!required || typeof propertyNames !== 'object' || typeof additionalProperties !== 'object') return
  jsonSchema.properties = Object.fromEntries(
    required.map((key) => [key, { ...additionalProperties, description: `The value for \`${key}\`.` }]),
  )
  delete jsonSchema.propertyNames
  jsonSchema.additionalProperties = false
}

function isTransform(schema: z.core.$ZodType): boolean {
  return schema._zod.def.type === 'transform'
}

/** Removes null, which a query cannot express: absent is the same. */
export function withoutNull(schema: JsonSchema): JsonSchema {
  if (!schema.anyOf) return schema
  const { anyOf, ...rest } = schema
  const alternatives = anyOf.filter(({ type }) => type !== 'null')
  return alternatives.length === 1 ? { ...alternatives[0], ...rest } : { ...rest, anyOf: alternatives }
}
