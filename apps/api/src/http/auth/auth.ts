import type { Db } from '@bootfarm/db'
import { APIError, type BetterAuthOptions, betterAuth } from 'better-auth'
import { prismaAdapter } from 'better-auth/adapters/prisma'
import { isAPIError } from 'better-auth/api'
import { genericOAuth, twoFactor } from 'better-auth/plugins'
import { AppError } from '../../errors/app-error.ts'
import { recordAccountEvent } from '../../events/record-event.ts'
import { type Clock, systemClock } from '../../rules/clock.ts'
import { changeOfEmailMail, resetMail, type SendMail, verificationMail } from '../../rules/mail.ts'
import { passwordLengthMax, passwordLengthMin } from '../../rules/person.ts'
import { mayComeByOidc } from '../../session/join-by-domain.ts'
import type { OidcSettings } from '../../session/oidc.ts'
import { hashPassword, verifyPassword } from '../../session/password-hash.ts'
import { addressHeader } from './address-header.ts'
import { afterAuth, beforeAuth, type EventOptions } from './auth-events.ts'

/**
 * Sign-ins from one address, counted on while less than a minute passes between two: a school behind one address starts
 * its day at once. Guessing is limited per account (auth-events.ts).
 */
const signInsPerMinuteMax = 300
const codesPerMinuteMax = 20
const mailsPerHourMax = 20
const requestsPerMinuteMax = 600
const linkValidSeconds = 3600

export const oidcProviderId = 'oidc'

/** Routes that the dashboard does not use. */
const disabledPaths = [
  // Their answers hold sessions' tokens: the account's own procedures list and end sessions.
  '/list-sessions',
  '/revoke-session',
  '/revoke-sessions',
  '/revoke-other-sessions',
  '/update-session',
  // They contain the provider's data for this server only.
  '/get-access-token',
  '/refresh-token',
  '/account-info',
  '/list-accounts',
  '/link-social',
  '/unlink-account',
  '/delete-user',
  '/delete-user/callback',
  '/two-factor/send-otp',
  '/two-factor/verify-otp',
  // The secret is shown once, when it is created.
  '/two-factor/get-totp-uri',
]

export interface AuthOptions {
  db: Db
  webUrl: string
  secret: string
  clock?: Clock
  /** Without it no mail is sent. */
  sendMail?: SendMail
  /** Allows people to come from the provider without an invitation. */
  isSelfService?: boolean
  oidc?: OidcSettings | null
  /** Without it nobody is notified. */
  logError?: (message: string, details: unknown[]) => void
}

const noMail: SendMail = async () => false

/**
 * Sign-in under /api/auth: e-mail and password with a second factor, one OpenID Connect provider, and what belongs to
 * an account.
 */
export function createAuth(options: AuthOptions) {
  const {
    db,
    webUrl,
    secret,
    clock = systemClock,
    sendMail = noMail,
    isSelfService = false,
    oidc = null,
    logError = () => undefined,
  } = options
  const context = { db, clock }
  const events = { context, rules: oidc?.rules ?? [] }
  return betterAuth({
    appName: 'Bootfarm',
    baseURL: webUrl,
    basePath: '/api/auth',
    secret,
    trustedOrigins: [webUrl],
    database: prismaAdapter(db, { provider: 'postgresql' }),
    disabledPaths,
    emailAndPassword: passwordOptions(context, sendMail, webUrl),
    // A link's token opens an account: its hash is kept.
    verification: { storeIdentifier: 'hashed' },
    ...mailedChanges(context, sendMail),
    account: { accountLinking: { enabled: true, trustedProviders: [] }, encryptOAuthTokens: true },
    databaseHooks: { user: { create: { before: refuseUninvited(events, isSelfService) } } },
    hooks: { before: beforeAuth(events), after: afterAuth(events) },
    rateLimit,
    advanced: advancedOptions(webUrl),
    onAPIError: {
      errorURL: pageUrl(webUrl, '/sign-in'),
      onError(error) {
        if (!isAPIError(error) || error.statusCode >= 500) logError('a request failed', [error])
      },
    },
    plugins: [twoFactor({ issuer: 'Bootfarm' }), ...(oidc ? [oidcPlugin(oidc)] : [])],
    telemetry: { enabled: false },
    // Its own logger writes to the terminal, with any content of a request.
    logger: { level: 'error', log: (_level, message, ...details) => logError(message, details) },
  })
}

export type Auth = ReturnType<typeof createAuth>

/**
 * Code flow with PKCE, state and nonce; the ID token's signature, issuer and audience are checked by the provider's
 * keys.
 */
function oidcPlugin({ issuer, clientId, clientSecret, name }: OidcSettings) {
  return genericOAuth({
    config: [
      {
        providerId: oidcProviderId,
        name,
        discoveryUrl: discoveryUrlOf({ issuer }),
        clientId,
        clientSecret,
        pkce: true,
        requireIdTokenVerification: true,
        scopes: ['openid', 'email', 'profile'],
        authentication: 'basic',
      },
    ],
  })
}

export function discoveryUrlOf({ issuer }: Pick<OidcSettings, 'issuer'>): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

function pageUrl(webUrl: string, path: string): string {
  return new URL(path, webUrl).toString()
}

const rateLimit = {
  enabled: true,
  storage: 'database' as const,
  window: 60,
  max: requestsPerMinuteMax,
  customRules: {
    '/sign-in/email': { window: 60, max: signInsPerMinuteMax },
    '/sign-in/social': { window: 60, max: signInsPerMinuteMax },
    '/two-factor/*': { window: 60, max: codesPerMinuteMax },
    '/change-password': { window: 60, max: codesPerMinuteMax },
    '/change-email': { window: 3600, max: mailsPerHourMax },
    '/request-password-reset': { window: 3600, max: mailsPerHourMax },
    '/send-verification-email': { window: 3600, max: mailsPerHourMax },
  },
}

function passwordOptions(context: EventOptions['context'], sendMail: SendMail, webUrl: string) {
  return {
    enabled: true,
    // Accounts are created by invitations and by mailed links, which prove the address first.
    disableSignUp: true,
    requireEmailVerification: true,
    minPasswordLength: passwordLengthMin,
    maxPasswordLength: passwordLengthMax,
    resetPasswordTokenExpiresIn: linkValidSeconds,
    revokeSessionsOnPasswordReset: true,
    password: {
      hash: (password) => answerable(hashPassword(password)),
      verify: (given) => answerable(verifyPassword(given)),
    },
    // Not awaited: an address with an account must not take longer to answer.
    async sendResetPassword({ user, token }) {
      void sendMail(resetMail({ email: user.email, url: pageUrl(webUrl, `/reset-password/${token}`) }))
    },
    async onPasswordReset({ user }) {
      if (!user.emailVerified) await dropProviderLinks(context, user.id)
      const event = { userId: user.id, action: 'account.resetPassword', isByPerson: true, address: null }
      await recordAccountEvent(context, event)
    },
  } satisfies BetterAuthOptions['emailAndPassword']
}

/**
 * Whoever holds the mailbox takes an account over that was made for an address that nobody had verified; the sign-in by
 * which it was made ends.
 */
async function dropProviderLinks({ db }: EventOptions['context'], userId: string): Promise<void> {
  await db.account.deleteMany({ where: { userId, providerId: { not: 'credential' } } })
  await db.session.deleteMany({ where: { userId } })
}

/** Says to the person at sign-in what the API says elsewhere. */
async function answerable<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (!(error instanceof AppError)) throw error
    throw new APIError('SERVICE_UNAVAILABLE', { code: error.code, message: error.publicText })
  })
}

function mailedChanges(context: EventOptions['context'], sendMail: SendMail) {
  return {
    emailVerification: {
      expiresIn: linkValidSeconds,
      autoSignInAfterVerification: false,
      async beforeEmailVerification({ id }) {
        await dropProviderLinks(context, id)
      },
      async sendVerificationEmail({ user, url }) {
        void sendMail(verificationMail({ email: user.email, url }))
      },
    },
    user: {
      changeEmail: {
        enabled: true,
        async sendChangeEmailConfirmation({ user, newEmail, url }) {
          void sendMail(changeOfEmailMail({ email: user.email, newEmail, url }))
        },
      },
    },
  } satisfies Partial<BetterAuthOptions>
}

interface NewUser {
  email: string
  emailVerified: boolean
}

/** Refuses the account of somebody whose address the provider has not verified, or whom nobody has invited. */
function refuseUninvited({ context, rules }: EventOptions, isSelfService: boolean) {
  return async (user: NewUser, ctx: { path?: string } | null) => {
    if (!ctx?.path?.startsWith('/callback/')) return
    if (!user.emailVerified)
      throw new APIError('FORBIDDEN', { code: 'not_verified', message: 'The provider has not verified this address.' })
    if (isSelfService || (await mayComeByOidc(context, { email: user.email, rules }))) return
    throw new APIError('FORBIDDEN', { code: 'not_invited', message: 'This address has not been invited.' })
  }
}

/** Set explicitly, because the default depends on NODE_ENV. */
function advancedOptions(webUrl: string) {
  return {
    ipAddress: { ipAddressHeaders: [addressHeader] },
    database: { generateId: 'uuid' },
    disableOriginCheck: false,
    disableCSRFCheck: false,
    useSecureCookies: webUrl.startsWith('https://'),
    defaultCookieAttributes: { httpOnly: true, sameSite: 'lax' },
  } satisfies BetterAuthOptions['advanced']
}
