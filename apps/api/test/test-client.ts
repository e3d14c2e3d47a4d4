import type { TestApi } from './test-api.ts'

export interface ProcedureAnswer {
  status: number
  /** The output, where the call went well. */
  data: unknown
  /** The API's own code, where it did not. */
  code: string | undefined
  text: string
}

interface Call {
  path: string
  type: 'query' | 'mutation' | 'subscription'
  input?: unknown
  /** None for nobody. */
  cookie?: string | undefined
  /** Besides, e.g. an API key's. */
  headers?: Record<string, string>
}

/** Calls a procedure over HTTP as the dashboard does. A subscription is asked for and ended at its first bytes. */
export async function callProcedure(
  api: TestApi,
  { path, type, input, cookie, headers }: Call,
): Promise<ProcedureAnswer> {
  const query = type !== 'mutation' && input !== undefined ? `?input=${encodeURIComponent(JSON.stringify(input))}` : ''
  const answer = await fetch(`${api.url}/api/trpc/${path}${query}`, {
    method: type === 'mutation' ? 'POST' : 'GET',
    headers: {
      ...(cookie ? { cookie } : {}),
      ...headers,
      ...(type === 'mutation' ? { 'content-type': 'application/json' } : {}),
      ...(type === 'subscription' ? { accept: 'text/event-stream' } : {}),
    },
    ...(type === 'mutation' ? { body: JSON.stringify(input ?? {}) } : {}),
  })
  if (answer.body && answer.headers.get('content-type')?.startsWith('text/event-stream'))
    return firstAnswer(answer.body)
  const text = await answer.text()
  const body = JSON.parse(text) as { result?: { data: unknown }; error?: { data: { appCode: string } } }
  return { status: answer.status, data: body.result?.data, code: body.error?.data.appCode, text }
}

/** A subscription is refused inside its stream: by an event with the status that a query would have had. */
async function firstAnswer(body: ReadableStream<Uint8Array>): Promise<ProcedureAnswer> {
  for await (const { event, data } of parseEvents(body)) {
    const text = JSON.stringify(data)
    if (event === 'message') return { status: 200, data, code: undefined, text }
    if (event !== 'serialized-error') continue
    const { httpStatus, appCode } = (data as { data: { httpStatus: number; appCode: string } }).data
    return { status: httpStatus, data: undefined, code: appCode, text }
  }
  throw new Error('the subscription ended without an answer')
}

/** Query of someone signed in; throws unless it went well. */
export async function query<T>(api: TestApi, cookie: string, path: string, input?: unknown): Promise<T> {
  return must<T>(await callProcedure(api, { path, type: 'query', input, cookie }))
}

export async function mutate<T>(api: TestApi, cookie: string, path: string, input: unknown): Promise<T> {
  return must<T>(await callProcedure(api, { path, type: 'mutation', input, cookie }))
}

function must<T>(answer: ProcedureAnswer): T {
  if (answer.status !== 200) throw new Error(`answered ${answer.status}: ${answer.text}`)
  return answer.data as T
}

export interface ServerEvent {
  id: string
  event: string
  data: unknown
}

/** Server-sent events of a subscription, as they come; ends with `close`. */
export async function openSubscription(
  api: TestApi,
  { path, cookie, lastEventId, input }: { path: string; cookie: string; lastEventId?: string; input?: object },
) {
  const controller = new AbortController()
  const query = input ? `?input=${encodeURIComponent(JSON.stringify(input))}` : ''
  const answer = await fetch(`${api.url}/api/trpc/${path}${query}`, {
    headers: {
      cookie,
      accept: 'text/event-stream',
      ...(lastEventId ? { 'last-event-id': lastEventId } : {}),
    },
    signal: controller.signal,
  })
  if (!answer.ok || !answer.body) throw new Error(`subscription answered ${answer.status}: ${await answer.text()}`)
  const events = parseEvents(answer.body)
  return {
    /** The next event that is the subscription's own: neither `connected` nor a ping. */
    async next(): Promise<ServerEvent> {
      for (;;) {
        const { value, done } = await events.next()
        if (done || !value) throw new Error('the subscription ended')
        if (value.event === 'message') return value
        if (value.event === 'serialized-error') throw new Error(JSON.stringify(value.data))
      }
    },
    close: () => controller.abort(),
  }
}

/** Takes the body at once: `fetch` cancels one that nobody has taken when its response is collected as garbage. */
function parseEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  return eventsIn(body.pipeThrough(new TextDecoderStream()))
}

async function* eventsIn(chunks: ReadableStream<string>): AsyncGenerator<ServerEvent> {
  let text = ''
  for await (const chunk of chunks) {
    text += chunk
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      yield parseEvent(text.slice(0, end))
      text = text.slice(end + 2)
    }
  }
}

function parseEvent(block: string): ServerEvent {
  const fields = new Map<string, string>()
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1).trimStart())
  }
  const data = fields.get('data')
  return {
    id: fields.get('id') ?? '',
    event: fields.get('event') ?? 'message',
    data: data ? JSON.parse(data) : undefined,
  }
}
