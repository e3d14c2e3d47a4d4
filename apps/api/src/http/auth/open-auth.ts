import type { FastifyBaseLogger } from 'fastify'
import { type Auth, type AuthOptions, createAuth } from './auth.ts'
import { ProviderAuth } from './provider-auth.ts'

interface OpenAuth {
  /** Waits for no provider. */
  auth: Auth
  providerAuth: ProviderAuth | undefined
}

export function openAuth({ oidc, ...options }: AuthOptions, log: FastifyBaseLogger): OpenAuth {
  const settings: AuthOptions = {
    ...options,
    logError: (message, details) => log.error({ detail: messagesOf(details) }, `sign-in: ${message}`),
  }
  const providerAuth = oidc ? new ProviderAuth({ ...settings, oidc }, (text) => log.warn(text)) : undefined
  // Reports at once whether it answers; nothing waits for that.
  void providerAuth?.find()
  return { auth: createAuth(settings), providerAuth }
}

/** The code of a failed sign-in; nothing else of it, because it may contain a whole request. */
function messagesOf(details: unknown[]): string[] {
  return details.flatMap((detail) => (detail instanceof Error ? [detail.message] : []))
}
