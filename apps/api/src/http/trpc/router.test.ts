import { expect, test } from 'vitest'
import { z } from 'zod'
import { appRouter } from './router.ts'

const integerMax = 2 ** 31 - 1
/** A place in a file; an index that the entries bound; sizes, which are kept as `bigint`. */
const larger = new Set([
  'boot.console.after',
  'boot.list.durationUsMin',
  'boot.list.durationUsMax',
  'bootMenu.create.defaultEntry',
  'bootMenu.update.defaultEntry',
  'diskCapture.start.sizeBytes',
  'explore.get.durationUsMin',
  'explore.get.durationUsMax',
  'explore.compare.durationUsMin',
  'explore.compare.durationUsMax',
  'explore.compare.baseDurationUsMin',
  'explore.compare.baseDurationUsMax',
  'explore.differences.durationUsMin',
  'explore.differences.durationUsMax',
  'explore.differences.boxDurationUsMin',
  'explore.differences.boxDurationUsMax',
  'placement.set.rules.others.rateBytesPerSecond',
  'placement.set.rules.sites[].rateBytesPerSecond',
  'placement.setOfFarm.rules.others.rateBytesPerSecond',
  'placement.setOfFarm.rules.sites[].rateBytesPerSecond',
  'upload.create.sizeBytes',
  'version.import.emptySizeBytes',
  'vdisk.registerVersion.sizeBytes',
  'vdisk.updateWriteCache.limitBytes',
])

interface Schema {
  type?: string
  maximum?: number
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
  additionalProperties?: Schema | boolean
}

/** Each place of a number in an input, and the largest one that it takes. */
function numbersOf(schema: Schema, place: string): [string, number][] {
  const { type, maximum = Number.POSITIVE_INFINITY, properties = {}, items, additionalProperties } = schema
  const parts = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  return [
    ...(type === 'integer' || type === 'number' ? [[place, maximum] as [string, number]] : []),
    ...Object.entries(properties).flatMap(([name, part]) => numbersOf(part, `${place}.${name}`)),
    ...(items ? numbersOf(items, `${place}[]`) : []),
    ...(typeof additionalProperties === 'object' ? numbersOf(additionalProperties, `${place}{}`) : []),
    ...parts.flatMap((part) => numbersOf(part, place)),
  ]
}

test('no number that a caller gives is too large for the database', () => {
  const procedures = appRouter._def.procedures as unknown as Record<string, { _def: { inputs: z.ZodType[] } }>
  const numbers = Object.entries(procedures).flatMap(([path, { _def }]) =>
    _def.inputs.flatMap((input) =>
      numbersOf(z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }) as Schema, path),
    ),
  )
  expect(numbers.map(([place]) => place)).toEqual(expect.arrayContaining(['organization.rename.revision']))
  expect(numbers.length).toBeGreaterThan(20)
  expect(numbers.filter(([place, max]) => max > integerMax && !larger.has(place))).toEqual([])
})
