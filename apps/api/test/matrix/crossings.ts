import { randomUUID } from 'node:crypto'
import { type JsonSchema, jsonSchemaOf, withoutNull } from '../../src/http/rest/json-schema.ts'
import { appRouter } from '../../src/http/trpc/router.ts'
import type { SampleTenant } from '../sample.ts'

type Input = Record<string, unknown>

/** One's own input with one foreign id in it, and the same with an id that nobody has. */
export interface Crossing {
  field: string
  foreign: Input
  absent: Input
}

/**
 * Returns every further id that a procedure takes beside its place, pointed across the border: filters, parts, targets.
 */
export function crossingsOf(
  path: string,
  {
    input,
    idName,
    own,
    foreign,
  }: { input: Input; idName: string | undefined; own: SampleTenant; foreign: SampleTenant },
): Crossing[] {
  const fields = Object.entries(inputSchemaOf(path).properties ?? {}).flatMap(([name, schema]) => {
    const shape = shapeOf(schema)
    return name === idName || !shape ? [] : [{ name, shape }]
  })
  const direct = fields.map(({ name, shape }) => {
    const wrap = (id: string) => ({ ...input, [name]: shape === 'many' ? [id] : id })
    return { field: name, foreign: wrap(idNamed(foreign, name)), absent: wrap(randomUUID()) }
  })
  return [...direct, ...nested(input, { idName, own, foreign })]
}

/** Ids further down in the sample: each of the tenant's own is replaced where it stands. */
function nested(
  input: Input,
  { idName, own, foreign }: { idName: string | undefined; own: SampleTenant; foreign: SampleTenant },
): Crossing[] {
  const { [idName ?? '']: place, ...rest } = input
  const text = JSON.stringify(rest)
  const names = ['siteId', 'collectionId', 'vdiskId', 'versionId', 'edgeId', 'farmId', 'bootId', 'deviceIds'] as const
  return names.flatMap((name) => {
    const [id, other] = [own[name], foreign[name]].map((value) => [value].flat()[0] ?? '')
    if (!id || !other || !text.includes(id)) return []
    const replaced = (by: string): Input => ({
      ...(place === undefined ? {} : { [idName ?? '']: place }),
      ...JSON.parse(text.replaceAll(id, by)),
    })
    return [{ field: `a part's ${name}`, foreign: replaced(other), absent: replaced(randomUUID()) }]
  })
}

function inputSchemaOf(path: string): JsonSchema {
  const procedure: unknown = Reflect.get(appRouter._def.procedures, path)
  const { inputs } = (procedure as { _def: { inputs: Parameters<typeof jsonSchemaOf>[0][] } })._def
  return inputs[0] ? jsonSchemaOf(inputs[0], 'input') : {}
}

function shapeOf(schema: JsonSchema): 'one' | 'many' | null {
  const { type, format, items } = withoutNull(schema)
  if (type === 'string' && format === 'uuid') return 'one'
  return type === 'array' && items && shapeOf(items) === 'one' ? 'many' : null
}

/** The tenant's id that fits a field of this name; its site's where none is known by it. */
function idNamed(tenant: SampleTenant, name: string): string {
  const special: Record<string, string | undefined> = {
    menuId: tenant.spareMenuIds[0],
    scheduleId: tenant.spareScheduleIds[0],
    entryId: tenant.auditEntryId,
    deviceId: tenant.deviceIds[0],
    deviceIds: tenant.deviceIds[0],
    actorId: tenant.apiKeyId,
    objectId: tenant.farmId,
  }
  const value = special[name] ?? Reflect.get(tenant, name) ?? Reflect.get(tenant, name.replace(/s$/, ''))
  return typeof value === 'string' ? value : tenant.siteId
}
