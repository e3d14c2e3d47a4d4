import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { isIP, isIPv4, type LookupFunction } from 'node:net'
import { AppError } from '../errors/app-error.ts'
import { readableConsoleText } from '../rules/console-text.ts'
import { resolveHost } from './resolve-host.ts'
import { type Address, hostOf, refuseAddress, refuseResolved, type TargetPolicy } from './target-guard.ts'

const timeoutMs = 10_000
const answerSizeMax = 1_024

export interface Sent {
  status: number | null
  error: string | null
  answer: string | null
}

interface Sending {
  url: string
  headers: Record<string, string>
  body: string
  policy: TargetPolicy
}

/**
 * Posts the message to an address that was looked up once and found fit: the connection takes that very one, so that a
 * name that leads elsewhere a moment later does not matter. Follows no redirect, waits for a bounded time, and reads a
 * bounded part of the answer.
 */
export async function sendMessage({ url, headers, body, policy }: Sending): Promise<Sent> {
  try {
    const target = new URL(url)
    const address = await resolve(target, policy)
    const { status, answer } = await post(target, { address, headers, body })
    const isTaken = status >= 200 && status < 300
    return { status, answer, error: isTaken ? null : refusalText(status) }
  } catch (error) {
    return { status: null, answer: null, error: errorText(error) }
  }
}

function refusalText(status: number): string {
  if (status >= 300 && status < 400) return `The receiver answered ${status}. Redirects are not followed.`
  return `The receiver answered ${status}. Only 200 to 299 counts as delivered.`
}

function errorText(error: unknown): string {
  if (error instanceof AppError) return error.publicText
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  switch (code) {
    case 'ECONNREFUSED':
      return 'The receiver refused the connection.'
    case 'ECONNRESET':
      return 'The receiver closed the connection before it answered.'
    case 'ETIMEDOUT':
      return `The receiver did not answer within ${timeoutMs / 1000} s.`
    default:
      return /CERT|SSL|TLS/.test(code)
        ? `The receiver’s certificate is not accepted: ${code}.`
        : 'The receiver could not be reached.'
  }
}

/** Throws a sentence for the delivery log. */
async function resolve(target: URL, policy: TargetPolicy): Promise<Address> {
  const host = hostOf(target)
  if (!isIP(host)) return refuseResolved(target, await resolveHost(host, policy.nameServers), policy)
  const address: Address = { address: host, family: isIPv4(host) ? 4 : 6 }
  refuseAddress(target, address, policy)
  return address
}

interface Post {
  address: Address
  headers: Record<string, string>
  body: string
}

function post(target: URL, { address, headers, body }: Post): Promise<{ status: number; answer: string | null }> {
  const pinned: LookupFunction = (_host, options, done) => {
    if (options.all) done(null, [address])
    else done(null, address.address, address.family)
  }
  return new Promise((resolve, reject) => {
    const send = target.protocol === 'https:' ? requestHttps : requestHttp
    const request = send(target, {
      method: 'POST',
      lookup: pinned,
      agent: false,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'Bootfarm-Webhooks/1',
      },
    })
    const timer = setTimeout(() => request.destroy(timedOut()), timeoutMs)
    request.on('error', reject)
    request.on('close', () => clearTimeout(timer))
    request.on('response', (response) => {
      readAnswer(response).then((answer) => resolve({ status: response.statusCode ?? 0, answer }), reject)
    })
    request.end(body)
  })
}

function timedOut(): Error {
  return Object.assign(new Error('timed out'), { code: 'ETIMEDOUT' })
}

/** The first bytes as text without control characters; the rest is left where it is. */
async function readAnswer(response: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= answerSizeMax) break
  }
  response.destroy()
  const text = Buffer.concat(chunks).subarray(0, answerSizeMax).toString('utf8')
  return text === '' ? null : readableConsoleText(text.replaceAll(/\s+/g, ' '))
}
