import type { JsonSchema } from '../json-schema.ts'
import { vocabulary } from './vocabulary.ts'

/** The schema, each of its fields with a description: its own, or else the one of its name in the vocabulary. */
export function described(schema: JsonSchema): JsonSchema {
  const { properties, items, additionalProperties, ...rest } = schema
  return {
    ...rest,
    ...alternativesOf(schema),
    ...(items ? { items: described(items) } : {}),
    ...(properties ? { properties: describedFields(properties) } : {}),
    ...(additionalProperties === undefined ? {} : { additionalProperties: ofOthers(additionalProperties) }),
  }
}

/** Throws for a field that nothing describes. */
export function describedFields(fields: Record<string, JsonSchema>): Record<string, JsonSchema> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, schema]) => {
      const description = schema.description ?? vocabulary[name]
      if (description === undefined)
        throw new Error(
          `Nothing describes the field ${name}. Add .describe() to its schema, or its name to vocabulary.ts.`,
        )
      return [name, { ...described(schema), description }]
    }),
  )
}

function ofOthers(schema: boolean | JsonSchema): boolean | JsonSchema {
  return typeof schema === 'boolean' ? schema : described(schema)
}

function alternativesOf(schema: JsonSchema): Partial<JsonSchema> {
  const found = (['anyOf', 'oneOf', 'allOf'] as const).flatMap((keyword) => {
    const alternatives = schema[keyword] as JsonSchema[] | undefined
    return alternatives ? [[keyword, alternatives.map(described)]] : []
  })
  return Object.fromEntries(found)
}
