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
    throw new Error('a schema that contains itself cannot be part of the OpenAPI document yet')
  return rest as JsonSchema
}

/** A text that is brought into its usual form comes out as it went in: of the same kind. */
function explain({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: object }): void {
  const { def } = zodSchema._zod
  if (def.type === 'pipe' && isTransform(def.out) && Object.keys(jsonSchema).length === 0)
    Object.assign(jsonSchema, jsonSchemaOf(def.in as z.ZodType, 'output'))
  if (['bigint', 'date', 'map', 'set', 'symbol', 'undefined', 'custom'].includes(def.type))
    throw new Error(`JSON has no ${def.type}: the API takes and gives what JSON can say`)
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
