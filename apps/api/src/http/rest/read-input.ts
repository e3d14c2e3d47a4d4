import { AppError, type FieldProblem } from '../../errors/app-error.ts'
import { inputDepthMax } from '../../rules/scalars.ts'
import { type JsonSchema, withoutNull } from './json-schema.ts'
import type { OperationInput } from './operations.ts'

interface RequestParts {
  params: Record<string, string>
  query: Record<string, string | string[]>
  body: unknown
}

/**
 * The procedure's input out of a request's path, query and body; zod holds it against the schema afterwards.
 * Throws `invalid` for what the operation does not take, and for text that is no number or truth value where one
 * belongs.
 */
export function inputOf(operation: OperationInput, { params, query, body }: RequestParts): unknown {
  const problems: FieldProblem[] = []
  const input: Record<string, unknown> = {}
  readBody(operation, body, { input, problems })
  for (const [name, value] of Object.entries(query)) {
    const schema = Object.hasOwn(operation.query, name) ? operation.query[name] : undefined
    if (schema) readValue({ in: 'query', name, value }, withoutNull(schema), { input, problems })
    else problems.push({ in: 'query', field: name, message: 'Unknown parameter.' })
  }
  for (const name of operation.pathNames) {
    const schema = operation.parameters[name] ?? {}
    readValue({ in: 'path', name, value: params[name] ?? '' }, schema, { input, problems })
  }
  if (hasNul(input)) problems.push({ in: 'body', field: '', message: 'Text cannot contain the character U+0000.' })
  if (problems.length > 0) throw invalid(problems)
  // A procedure without an input takes undefined, and one whose fields are all optional an empty object.
  return Object.keys(input).length === 0 && !operation.takesInput ? undefined : input
}

export function invalid(problems: FieldProblem[]): AppError {
  const [first] = problems
  const place = first ? [first.in, first.field].filter(Boolean).join('.') : ''
  return new AppError('invalid', { public: `${place}: ${first?.message ?? ''}`, fields: problems })
}

interface Reading {
  input: Record<string, unknown>
  problems: FieldProblem[]
}

function readBody({ body: schema }: OperationInput, body: unknown, { input, problems }: Reading): void {
  if (body === undefined && !schema?.required) return
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    problems.push({ in: 'body', field: '', message: 'The body must be a JSON object.' })
    return
  }
  for (const [name, value] of Object.entries(body)) {
    if (schema?.properties && Object.hasOwn(schema.properties, name)) input[name] = value
    else problems.push({ in: 'body', field: name, message: 'Unknown field.' })
  }
}

interface TextValue {
  in: 'query' | 'path'
  name: string
  value: string | string[]
}

function readValue(text: TextValue, schema: JsonSchema, { input, problems }: Reading): void {
  const { name, value } = text
  const complain = (message: string) => problems.push({ in: text.in, field: name, message })
  if (schema.type === 'array') {
    input[name] = [value].flat().map((one) => scalarOf(one, schema.items ?? {}, complain))
    return
  }
  if (Array.isArray(value)) complain('Give this parameter only once.')
  else input[name] = scalarOf(value, schema, complain)
}

/** Strict: `1e3`, ` 1`, `yes` and the empty text are no values. */
function scalarOf(text: string, { type }: JsonSchema, complain: (message: string) => void): unknown {
  switch (type) {
    case 'integer':
      if (/^-?\d{1,15}$/.test(text)) return Number(text)
      complain('Enter a whole number.')
      return undefined
    case 'number':
      if (/^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text)
      complain('Enter a number.')
      return undefined
    case 'boolean':
      if (text === 'true' || text === 'false') return text === 'true'
      complain('Enter true or false.')
      return undefined
    default:
      return text
  }
}

/** PostgreSQL takes none in a text. */
function hasNul(value: unknown, depth = 0): boolean {
  if (typeof value === 'string') return value.includes('\0')
  // What is deeper is refused for that, with any procedure.
  if (typeof value !== 'object' || value === null || depth > inputDepthMax) return false
  return Object.entries(value).some(([name, item]) => name.includes('\0') || hasNul(item, depth + 1))
}
