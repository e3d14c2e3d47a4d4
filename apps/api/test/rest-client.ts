import type { Operation } from '../src/http/rest/operations.ts'
import type { TestApi } from './test-api.ts'

export interface RestAnswer {
  status: number
  headers: Headers
  body: unknown
  text: string
}

interface RestCall {
  method?: string
  body?: unknown
  /** Instead of a JSON body. */
  rawBody?: string
  headers?: Record<string, string | undefined>
}

/** A request below /api/v1. */
export async function callRest(api: Pick<TestApi, 'url'>, path: string, call: RestCall = {}): Promise<RestAnswer> {
  const body = call.rawBody ?? (call.body === undefined ? undefined : JSON.stringify(call.body))
  const headers = new Headers(body === undefined ? {} : { 'content-type': 'application/json' })
  for (const [name, value] of Object.entries(call.headers ?? {})) if (value !== undefined) headers.set(name, value)
  const answer = await fetch(`${api.url}/api/v1${path}`, {
    method: call.method ?? 'GET',
    headers,
    ...(body === undefined ? {} : { body }),
  })
  const text = await answer.text()
  return {
    status: answer.status,
    headers: answer.headers,
    body: text === '' ? undefined : JSON.parse(text),
    text,
  }
}

/** The request of an operation that gives its procedure this input. */
export function requestOf(operation: Operation, input: object = {}) {
  const left = { ...input } as Record<string, unknown>
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = left[name]
    delete left[name]
    return encodeURIComponent(String(value))
  })
  // Samples may hold more than their procedure takes, which REST refuses.
  const taken = operation.body?.properties ?? operation.query
  for (const name of Object.keys(left)) if (!taken[name]) delete left[name]
  if (operation.body) return { path, call: { method: operation.method, body: left } }
  const query = new URLSearchParams(
    Object.entries(left).map(([name, value]): [string, string] => [name, String(value)]),
  )
  return { path: query.size > 0 ? `${path}?${query}` : path, call: { method: operation.method } }
}
