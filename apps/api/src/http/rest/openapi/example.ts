import { type JsonSchema, resolved } from '../json-schema.ts'

/** Texts by the name of their field. Others come from the schema: its enumeration, format or pattern. */
const texts: Record<string, string> = {
  address: '192.0.2.10',
  clientArch: 'x64_uefi',
  commandLine: 'console=ttyS0',
  csv: 'name,mac\nroom-101-pc-01,52:54:00:12:34:56\n',
  diskPath: 'classroom/disk.raw',
  edgeRelease: '1.4.0',
  email: 'ada@example.org',
  expression: '0 7 * * 1-5',
  hardwareModel: 'Maker Desk 7',
  initrdPath: 'classroom/initrd.img',
  ip: '192.0.2.10',
  kernelPath: 'classroom/vmlinuz',
  mac: '52:54:00:12:34:56',
  macPrefix: '52:54:00',
  name: 'room-101-pc-01',
  namePattern: 'room-101-pc-{n}',
  networkCard: 'e1000e 8086:15b8',
  objectKind: 'device',
  relayNetwork: '10.20.0.0/16',
  search: 'room-101',
  subnets: '192.0.2.0/24',
  tag: 'room-101',
  timeZone: 'Europe/Berlin',
  url: 'https://hooks.example.org/bootfarm',
  version: '1.4.0',
}

const formats: Record<string, string> = {
  uuid: '0b3f6a52-6c0f-4b1d-8a57-3f1de5a0c701',
  'date-time': '2026-11-27T07:00:00.000Z',
  date: '2026-11-27',
  email: 'ada@example.org',
  uri: 'https://hooks.example.org/bootfarm',
}

/** An index into a list whose example has one element, and a size in sectors. */
const numbers: Record<string, number> = { defaultEntry: 0, sizeBytes: 4096 }

type Schemas = Record<string, JsonSchema>

/**
 * A value that the schema takes, the same each time. `schemas` are the components that it may refer to, and `name` is
 * the field that it is for. A test holds each example against the operation's own schemas.
 */
export function exampleOf(schema: JsonSchema, schemas: Schemas = {}, name = ''): unknown {
  const [given] = (schema.examples as unknown[] | undefined) ?? []
  if (given !== undefined) return given
  if ('$ref' in schema) return exampleOf(resolved(schema, schemas), schemas, name)
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  const alternatives = (schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined
  if (alternatives) return exampleOf(alternatives.find(({ type }) => type !== 'null') ?? {}, schemas, name)
  const type = Array.isArray(schema.type) ? (schema.type as string[]).find((one) => one !== 'null') : schema.type
  if (type === 'object') return objectExample(schema, schemas, name)
  if (type === 'array') return arrayExample(schema, schemas, name)
  if (type === 'integer' || type === 'number') return numberExample(schema, name)
  if (type === 'boolean') return true
  return type === 'string' ? textExample(schema, name) : null
}

function objectExample(schema: JsonSchema, schemas: Schemas, name: string): unknown {
  const { properties = {}, additionalProperties, propertyNames } = schema
  const fields = Object.entries(properties).map(([key, one]) => [key, exampleOf(one, schemas, key)])
  const others = (propertyNames as JsonSchema | undefined)?.enum ?? []
  const value = typeof additionalProperties === 'object' ? additionalProperties : {}
  return Object.fromEntries([...fields, ...others.map((key) => [key, exampleOf(value, schemas, name)])])
}

function arrayExample({ items, prefixItems, minItems }: JsonSchema, schemas: Schemas, name: string): unknown[] {
  if (prefixItems) return (prefixItems as JsonSchema[]).map((one) => exampleOf(one, schemas, name))
  return Array.from({ length: Math.max(1, Number(minItems ?? 1)) }, () => exampleOf(items ?? {}, schemas, name))
}

function numberExample({ minimum, exclusiveMinimum, maximum }: JsonSchema, name: string): number {
  if (name in numbers) return numbers[name] ?? 0
  const least = Math.max(Number(minimum ?? 0), exclusiveMinimum === undefined ? 0 : Number(exclusiveMinimum) + 1)
  return Math.min(Math.max(least, 1), Number(maximum ?? Number.MAX_SAFE_INTEGER))
}

function textExample({ format, pattern, minLength, maxLength }: JsonSchema, name: string): string {
  const digits = /^\^\[0-9a-f\]\{(\d+)\}\$$/.exec(String(pattern ?? ''))
  if (digits) return 'a3'.repeat(Number(digits[1]) / 2)
  const byFormat = formats[String(format ?? '')]
  if (byFormat) return byFormat
  // The pattern of a local time ends without a zone.
  if (name === 'at' && pattern) return '2026-12-24T06:30'
  if (name === 'at' || name.endsWith('At') || name.endsWith('Until')) return '2026-11-27T07:00:00.000Z'
  if (/(^id|Id)s?$/.test(name)) return formats.uuid ?? ''
  const text = texts[name] ?? 'text'
  return text.padEnd(Number(minLength ?? 0), 'x').slice(0, Number(maxLength ?? text.length))
}
