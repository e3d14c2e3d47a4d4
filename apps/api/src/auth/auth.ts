import type { Db } from '@bootfarm/db'
import { betterAuth } from 'better-auth'
import { prismaAdapter } from 'better-auth/adapters/prisma'

/** Sign-ins from one address in a minute: people mistype, guessers go on. */
const signInsPerMinuteMax = 30
const requestsPerMinuteMax = 600

interface AuthOptions {
  db: Db
  webUrl: string
  secret: string
}

/** E-mail and password under /api/auth; nobody signs up by himself. */
export function createAuth({ db, webUrl, secret }: AuthOptions) {
  return betterAuth({
    baseURL: webUrl,
    basePath: '/api/auth',
    secret,
    trustedOrigins: [webUrl],
    database: prismaAdapter(db, { provider: 'postgresql' }),
    emailAndPassword: { enabled: true, disableSignUp: true },
    rateLimit: {
      enabled: true,
      window: 60,
      max: requestsPerMinuteMax,
      customRules: { '/sign-in/email': { window: 60, max: signInsPerMinuteMax } },
    },
    // Said, not left to a default that depends on NODE_ENV.
    advanced: { database: { generateId: 'uuid' }, disableOriginCheck: false, disableCSRFCheck: false },
    telemetry: { enabled: false },
    logger: { level: 'error' },
  })
}

export type Auth = ReturnType<typeof createAuth>
