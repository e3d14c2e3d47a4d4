import { apiUrl } from '../env'

/** Headers of one connection only (RFC 9110, section 7.6.1), or set again by `fetch`. */
const hopHeaders = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/**
 * Hands `/api/*`, and `/edge/*` and `/install/*` for site servers, through to the API, so that cookies and live updates
 * are same-origin. A rewrite in next.config.ts would fix the API's address at build time. Bodies are streamed both
 * ways; the API sees the browser go away.
 */
export async function forwardToApi(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const headers = withoutHopHeaders(request.headers)
  // The body is passed on as it comes; `fetch` would unpack it and leave the header behind.
  headers.set('accept-encoding', 'identity')
  const init: RequestInit & { duplex?: 'half' } = {
    method: request.method,
    headers,
    redirect: 'manual',
    cache: 'no-store',
    signal: request.signal,
  }
  if (request.body) Object.assign(init, { body: request.body, duplex: 'half' })
  try {
    const answer = await fetch(`${apiUrl()}${pathname}${search}`, init)
    return new Response(answer.body, { status: answer.status, headers: answerHeaders(answer.headers) })
  } catch (error) {
    if (request.signal.aborted) return new Response(null, { status: 499 })
    return apiAway(error)
  }
}

function answerHeaders(source: Headers): Headers {
  const headers = withoutHopHeaders(source)
  // Next's compressor would hold back the lines of live updates (RFC 9111, section 5.2.2.6).
  if (headers.get('content-type')?.startsWith('text/event-stream'))
    headers.set('cache-control', 'no-store, no-transform')
  return headers
}

function withoutHopHeaders(source: Headers): Headers {
  const headers = new Headers(source)
  for (const name of hopHeaders) headers.delete(name)
  return headers
}

function apiAway(error: unknown): Response {
  console.error('the control plane does not respond:', error instanceof Error ? (error.cause ?? error.message) : error)
  const problem = {
    type: 'about:blank',
    title: 'The control plane does not respond',
    status: 502,
    code: 'unavailable',
    detail: 'The dashboard is running, but the API is not. Try again in a moment.',
  }
  return Response.json(problem, { status: 502, headers: { 'content-type': 'application/problem+json' } })
}
