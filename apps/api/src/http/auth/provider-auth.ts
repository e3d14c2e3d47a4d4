import type { OidcSettings } from '../../session/oidc.ts'
import { type Auth, type AuthOptions, createAuth, discoveryUrlOf, oidcProviderId } from './auth.ts'

const answerLimitMs = 5_000

/**
 * Sign-in by the OpenID Connect provider. better-auth asks for the provider's document only when it is created: here
 * that happens when the provider answers, and is tried again with each sign-in until then. Everything else works
 * without it.
 */
export class ProviderAuth {
  readonly #options: AuthOptions & { oidc: OidcSettings }
  readonly #warn: (text: string) => void
  #found: Auth | null = null
  /** One at a time, however many people sign in. */
  #asking: Promise<Auth | null> | undefined

  constructor(options: AuthOptions & { oidc: OidcSettings }, warn: (text: string) => void) {
    this.#options = options
    this.#warn = warn
  }

  /** Null while the provider does not answer, which is known after some seconds. */
  async find(): Promise<Auth | null> {
    if (this.#found) return this.#found
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    this.#found = await this.#asking
    return this.#found
  }

  async #ask(): Promise<Auth | null> {
    const { oidc } = this.#options
    const url = discoveryUrlOf(oidc)
    const problem = await problemOf(url)
    if (problem === null) {
      const auth = createAuth(this.#options)
      const { socialProviders } = await auth.$context
      if (socialProviders.some(({ id }) => id === oidcProviderId)) return auth
    }
    this.#warn(
      `${url} ${problem ?? 'does not name what sign-in needs'}: nobody can sign in by ${oidc.name} until it does. It is asked again with the next sign-in.`,
    )
    return null
  }
}

/** Why the document is missing; null if it is there. better-auth itself would wait for it without a limit. */
async function problemOf(url: string): Promise<string | null> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(answerLimitMs) })
    await answer.body?.cancel()
    return answer.ok ? null : `answers ${answer.status}`
  } catch {
    return 'does not answer'
  }
}
