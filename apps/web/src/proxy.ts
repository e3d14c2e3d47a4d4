import { type NextRequest, NextResponse } from 'next/server'
import { isServedSecurely } from './env'
import { contentSecurityPolicy } from './lib/content-security-policy'

const yearSeconds = 31_536_000

/** Gives each page its nonce, which Next puts on its scripts. Nothing is authorised here: that is the API's. */
export function proxy(request: NextRequest): NextResponse {
  const nonce = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64')
  const policy = contentSecurityPolicy(nonce, { isDevelopment: process.env.NODE_ENV === 'development' })
  const headers = new Headers(request.headers)
  headers.set('content-security-policy', policy)
  const response = NextResponse.next({ request: { headers } })
  response.headers.set('content-security-policy', policy)
  if (isServedSecurely()) response.headers.set('strict-transport-security', `max-age=${yearSeconds}`)
  return response
}

/** Pages only: the API sends its own policy, and files contain nothing to run. */
export const config = { matcher: ['/((?!api/|_next/static/|_next/image|icon.svg).*)'] }
